// Memory that is filled before processes are forked, and that all of them read.

#ifndef EYELEVEL_SERVERS_QUIC_SHARED_MEMORY_H_
#define EYELEVEL_SERVERS_QUIC_SHARED_MEMORY_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace eyelevel {

// A fork copies the page tables of ordinary memory, 2 kB for each MB, which
// takes time. Those of this memory it leaves out: a process enters them itself
// when it first reads, 16 pages at a time, in 3 us for a response of 100 kB. To
// enter all at once (MADV_POPULATE_READ) would take each of 150 processes that
// share 117 MB at least 20 ms and 0.25 MB.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Memory of `size` bytes, which stays where it is until this is destroyed. A
  // null pointer when there is no more; errno says why.
  char* Allocate(size_t size);

  // From now on nothing in it can be changed, and nothing allocated.
  absl::Status Seal();

 private:
  std::vector<absl::Span<char>> mappings_;
  absl::Span<char> free_;  // The rest of the last mapping.
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_SHARED_MEMORY_H_
