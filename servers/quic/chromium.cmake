# Chromium's QUIC server code as one static library, `quiche`, from an unpacked chromium source.

set(CHROMIUM "" CACHE PATH "Unpacked chromium source, as fetch.py leaves it")
if(NOT EXISTS ${CHROMIUM}/chrome/VERSION)
  message(FATAL_ERROR "CHROMIUM is no unpacked chromium source: '${CHROMIUM}'")
endif()
file(STRINGS ${CHROMIUM}/chrome/VERSION CHROMIUM_VERSION)
list(TRANSFORM CHROMIUM_VERSION REPLACE "^[A-Z]+=" "")
list(JOIN CHROMIUM_VERSION "." CHROMIUM_VERSION)
set(QUICHE ${CHROMIUM}/net/third_party/quiche/src)

# Chromium's abseil and BoringSSL, whose versions quiche is written against. Debian's protobuf, since the
# bundled one's CMake build is a large one for three small messages; linked statically, so that the server
# still starts when the system's library has moved on.
set(BUILD_TESTING OFF)
set(ABSL_PROPAGATE_CXX_STD ON)
set(ABSL_ENABLE_INSTALL OFF)
add_subdirectory(${CHROMIUM}/third_party/abseil-cpp abseil EXCLUDE_FROM_ALL SYSTEM)
add_subdirectory(${CHROMIUM}/third_party/boringssl/src boringssl EXCLUDE_FROM_ALL SYSTEM)
set(Protobuf_USE_STATIC_LIBS ON)
find_package(Protobuf REQUIRED)
find_package(ZLIB REQUIRED)

# Headers are compiled once, not with each of the sources that include them: the whole build takes 8 CPU minutes instead
# of 14. BoringSSL's libssl is left out, which then takes longer.
include(headers.cmake)

# What no server calls, by path: a third of quiche, and all that needs more of //url than a host's name.
set(LEFT_OUT
  # HTTP/2 endpoints; header_validator.cc serves HTTP/3 too
  /http2/adapter/[^h]
  # other services than HTTP
  /masque/ /tools/connect_ /tools/devious_baton /encapsulated/ web_transport_only
  # clients, but for connecting_client_socket, which the event loop's socket factory names
  [^g]_client /client_proof web_transport_fingerprint connection_migration_manager quic_server_id
  quic_generic_session quic_name_lookup interactive_cli quic_url url_utils
  # the backend that ours takes the place of
  memory_cache_backend file_utils
  # event traces
  quic_trace_ trace_converter)
list(JOIN LEFT_OUT "|" LEFT_OUT)

# Sources that cannot share a translation unit: their file-level names clash.
set(COMPILED_ALONE
  /congestion_control/bbr /congestion_control/tcp_cubic_sender_bytes /crypto/aes_ /crypto/chacha
  /crypto/crypto_secret_boxer /http2/core/spdy_protocol)
list(JOIN COMPILED_ALONE "|" COMPILED_ALONE)

function(read_source_list group variable)
  set(paths)
  file(READ ${QUICHE}/build/source_list.json source_list)
  string(JSON count LENGTH ${source_list} ${group})
  math(EXPR last "${count} - 1")
  foreach(i RANGE ${last})
    string(JSON path GET ${source_list} ${group} ${i})
    list(APPEND paths ${path})
  endforeach()
  set(${variable} ${paths} PARENT_SCOPE)
endfunction()

set(quiche_sources)
foreach(group quiche_core_srcs quiche_tool_support_srcs io_tool_support_srcs linux_only_srcs
        default_platform_impl_srcs)
  read_source_list(${group} paths)
  list(FILTER paths INCLUDE REGEX "\\.cc$")
  list(FILTER paths EXCLUDE REGEX "${LEFT_OUT}")
  list(APPEND quiche_sources ${paths})
endforeach()
list(TRANSFORM quiche_sources PREPEND ${QUICHE}/)

set(GENERATED ${CMAKE_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${GENERATED})
read_source_list(protobuf protos)
foreach(proto ${protos})
  string(REGEX REPLACE "\\.proto$" ".pb" stem ${GENERATED}/${proto})
  add_custom_command(
    OUTPUT ${stem}.cc ${stem}.h
    COMMAND protobuf::protoc --proto_path=${QUICHE} --cpp_out=${GENERATED} ${QUICHE}/${proto}
    DEPENDS ${QUICHE}/${proto})
  list(APPEND quiche_sources ${stem}.cc)
endforeach()

# Debian's protobuf parses a std::string where Chromium's newer one takes a view.
set(original ${QUICHE}/quiche/quic/core/crypto/quic_crypto_server_config.cc)
set(patched ${GENERATED}/quic_crypto_server_config.cc)
file(READ ${original} text)
string(REPLACE "ParseFromString(plaintext)" "ParseFromString(std::string(plaintext))" patched_text "${text}")
if(patched_text STREQUAL text)
  message(FATAL_ERROR "${original} no longer parses 'plaintext': chromium.cmake's patch wants a look")
endif()
file(WRITE ${patched}.new "${patched_text}")
file(COPY_FILE ${patched}.new ${patched} ONLY_IF_DIFFERENT)
list(TRANSFORM quiche_sources REPLACE "^${original}$" "${patched}")

foreach(source ${quiche_sources})
  if(source MATCHES "${COMPILED_ALONE}")
    set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endforeach()

add_library(quiche STATIC ${quiche_sources} platform/quiche_googleurl_impl.cc)
set_target_properties(quiche PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 10)
# No warnings: these are not our files.
target_compile_options(quiche PRIVATE -w)
# Our platform headers come before quiche's own, whose place one of them takes.
target_include_directories(quiche SYSTEM PUBLIC
  ${CMAKE_CURRENT_SOURCE_DIR}/platform ${GENERATED} ${QUICHE} ${QUICHE}/quiche/common/platform/default)
target_link_libraries(quiche PUBLIC ssl crypto ZLIB::ZLIB protobuf::libprotobuf-lite
  absl::absl_check absl::absl_log absl::algorithm_container absl::any_invocable absl::base absl::bind_front
  absl::btree absl::check absl::cleanup absl::cord absl::core_headers absl::fixed_array absl::flat_hash_map
  absl::flat_hash_set absl::function_ref absl::hash absl::inlined_vector absl::int128 absl::log
  absl::log_flags absl::log_globals absl::log_initialize absl::memory absl::node_hash_map absl::node_hash_set absl::no_destructor
  absl::optional absl::span absl::stacktrace absl::status absl::statusor absl::str_format absl::strings
  absl::symbolize absl::synchronization absl::time)
precompile(quiche quiche/quic/core/http/quic_spdy_session.h)
