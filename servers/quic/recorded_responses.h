// A recorded site's responses in memory: the files of a response folder, parsed
// once.
//
// This file and the matching know nothing of QUIC.

#ifndef EYELEVEL_SERVERS_QUIC_RECORDED_RESPONSES_H_
#define EYELEVEL_SERVERS_QUIC_RECORDED_RESPONSES_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "shared_memory.h"

namespace eyelevel {

using Header = std::pair<absl::string_view, absl::string_view>;

// Sent where a recording has no such header; the TCP side's WSGI application
// adds the same two.
inline constexpr Header kDefaultServer = {"server", "eyelevel"};
inline constexpr Header kDefaultDate = {"date",
                                        "Thu, 01 Jan 2026 00:00:00 GMT"};

// One recorded exchange as it is replayed. The views point into its file, which
// is in `memory` with its header names in lower case.
struct RecordedResponse {
  RecordedResponse() = default;
  RecordedResponse(const RecordedResponse&) = delete;
  RecordedResponse& operator=(const RecordedResponse&) = delete;

  std::string file;  // "host/00007-logo.png"
  std::shared_ptr<const SharedMemory> memory;

  absl::string_view method;
  std::string authority;  // Lower case, without ":443".
  absl::string_view path;
  absl::string_view query;  // Without the "?"; empty when there is none.

  // As sent: three digits; names in lower case, in NGINX's order.
  absl::string_view status;
  std::vector<Header> headers;
  absl::string_view body;

  absl::string_view content_range;  // Of the headers; empty when there is none.
  absl::Duration wait;  // The recorded server's time to the first byte.
};

using RecordedResponses = std::vector<std::unique_ptr<const RecordedResponse>>;

// Reads every file of every folder in `folder`, in recorded order, which is
// that of the file names. The error says which file is broken and how.
absl::StatusOr<RecordedResponses> LoadRecordedResponses(
    const std::filesystem::path& folder);

// The form in which authorities are compared: lower case, without the default
// port.
std::string NormalAuthority(absl::string_view authority);

// Splits a URL without its scheme; a fragment is left out.
std::pair<absl::string_view, absl::string_view> AuthorityAndTarget(
    absl::string_view url);

// Splits a request target at the first "?"; an empty path is "/".
std::pair<absl::string_view, absl::string_view> PathAndQuery(
    absl::string_view target);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_RECORDED_RESPONSES_H_
