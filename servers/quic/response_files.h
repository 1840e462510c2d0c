// The files of a response folder: which there are, and what is in them. A
// folder may come from anybody, so that nothing but ordinary files is opened,
// and no more is read than a site may have.

#ifndef EYELEVEL_SERVERS_QUIC_RESPONSE_FILES_H_
#define EYELEVEL_SERVERS_QUIC_RESPONSE_FILES_H_

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "shared_memory.h"

namespace eyelevel {

// The names of the files of every folder in `folder`, in printable ASCII
// ("host/00007-logo.png"), in recorded order, which is that of the files' own
// names. Other things than folders are passed over, such as a site's index. The
// error has one line. Paths of so many files would take much more memory.
absl::StatusOr<std::vector<std::string>> ListResponseFiles(
    const std::filesystem::path& folder);

// The content of a file, or of the file that a link stands for, in `memory`.
// That must be an ordinary file of at most `max_bytes`, and be named by a path
// without further links.
absl::StatusOr<absl::Span<char>> ReadResponseFile(
    const std::filesystem::path& path, uint64_t max_bytes,
    SharedMemory& memory);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_RESPONSE_FILES_H_
