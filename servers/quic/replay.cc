#include "replay.h"

namespace eyelevel {
namespace {

// Grants the preflight (Fetch standard, section 3.3): what was asked for is
// allowed.
std::vector<Header> PreflightHeaders(const Request& request) {
  std::vector<Header> headers = {
      kDefaultServer,
      kDefaultDate,
      {"access-control-allow-origin", request.origin},
      {"access-control-allow-credentials", "true"},
      {"access-control-allow-methods", request.access_control_request_method},
  };
  if (!request.access_control_request_headers.empty()) {
    headers.emplace_back("access-control-allow-headers",
                         request.access_control_request_headers);
  }
  return headers;
}

}  // namespace

Answer Replay::AnswerTo(const Request& request) {
  const Match match = matcher_.Find(request);
  switch (match.kind) {
    case MatchKind::kPreflight:
      return {match.kind,          "", "204", PreflightHeaders(request), "",
              absl::ZeroDuration()};
    case MatchKind::kMiss:
      return {
          match.kind, "",
          "404",      {{"content-length", "0"}, kDefaultServer, kDefaultDate},
          "",         absl::ZeroDuration()};
    default:
      const RecordedResponse& recorded = *match.recorded;
      const absl::string_view body =
          request.method == "HEAD" ? "" : recorded.body;
      return {match.kind,       recorded.file, recorded.status,
              recorded.headers, body,          recorded.wait};
  }
}

}  // namespace eyelevel
