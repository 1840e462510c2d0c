#include "shared_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

// With it, whoever reads beyond what was allocated is found, as on the heap.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)
#define ASAN_UNPOISON_MEMORY_REGION(address, size)
#endif

namespace eyelevel {
namespace {

// A process may have 65,530 mappings, fewer than there may be files. The unused
// part of one takes no memory.
constexpr size_t kMappingBytes = 16 << 20;

// AddressSanitizer tells so many bytes from others.
constexpr size_t kAlignment = 8;

}  // namespace

SharedMemory::~SharedMemory() {
  for (const absl::Span<char> mapping : mappings_) {
    ASAN_UNPOISON_MEMORY_REGION(mapping.data(), mapping.size());
    munmap(mapping.data(), mapping.size());
  }
}

char* SharedMemory::Allocate(size_t size) {
  if (size > free_.size() || free_.empty()) {
    const size_t bytes = std::max(size, kMappingBytes);
    void* const mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) {
      return nullptr;
    }
    free_ = absl::MakeSpan(static_cast<char*>(mapping), bytes);
    mappings_.push_back(free_);
    ASAN_POISON_MEMORY_REGION(mapping, bytes);
  }
  char* const begin = free_.data();
  ASAN_UNPOISON_MEMORY_REGION(begin, size);
  const size_t used = (size / kAlignment + 1) * kAlignment;
  free_.remove_prefix(std::min(used, free_.size()));
  return begin;
}

absl::Status SharedMemory::Seal() {
  for (const absl::Span<char> mapping : mappings_) {
    if (mprotect(mapping.data(), mapping.size(), PROT_READ) != 0) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the memory that servers share cannot be made read-only: ",
          std::strerror(errno)));
    }
  }
  free_ = {};
  return absl::OkStatus();
}

}  // namespace eyelevel
