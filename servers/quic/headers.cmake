# Precompiled headers.

# Compile `headers`, of the standard library or of the include path, once for all sources of `target`.
function(precompile target) # header…
  list(TRANSFORM ARGN PREPEND "$<$<COMPILE_LANGUAGE:CXX>:<")
  list(TRANSFORM ARGN APPEND "$<ANGLE-R>>")
  target_precompile_headers(${target} PRIVATE ${ARGN})
endfunction()

# Set `variable` to the static libraries of `folder` and the folders below it.
function(static_libraries folder variable)
  set(found)
  get_property(targets DIRECTORY ${folder} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL STATIC_LIBRARY)
      list(APPEND found ${target})
    endif()
  endforeach()
  get_property(subfolders DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
  foreach(subfolder ${subfolders})
    static_libraries(${subfolder} further)
    list(APPEND found ${further})
  endforeach()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# Abseil's libraries have a few sources each: those that are compiled with the same options share the headers of one.
function(share_abseil_headers)
  set(abseil ${CHROMIUM}/third_party/abseil-cpp)
  get_target_property(options absl_strings COMPILE_OPTIONS)
  file(WRITE ${CMAKE_BINARY_DIR}/abseil_headers.cc "")
  add_library(abseil_headers OBJECT ${CMAKE_BINARY_DIR}/abseil_headers.cc)
  target_include_directories(abseil_headers SYSTEM PRIVATE ${abseil})
  target_compile_options(abseil_headers PRIVATE ${options})
  precompile(abseil_headers algorithm atomic functional memory ostream string string_view tuple type_traits utility
    vector absl/base/internal/raw_logging.h absl/strings/string_view.h absl/types/optional.h absl/types/span.h)
  static_libraries(${abseil} libraries)
  foreach(library ${libraries})
    get_target_property(own_options ${library} COMPILE_OPTIONS)
    if(own_options STREQUAL options)
      target_precompile_headers(${library} REUSE_FROM abseil_headers)
    endif()
  endforeach()
endfunction()

share_abseil_headers()
precompile(crypto algorithm memory string_view utility
  openssl/bytestring.h openssl/err.h openssl/mem.h openssl/span.h)
