// The answers of a server: recorded responses by the matching rule, and the two
// that it makes up.

#ifndef EYELEVEL_SERVERS_QUIC_REPLAY_H_
#define EYELEVEL_SERVERS_QUIC_REPLAY_H_

#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "matcher.h"
#include "recorded_responses.h"

namespace eyelevel {

// Views point into the recorded responses and the request, whichever ends
// first.
struct Answer {
  MatchKind kind;
  absl::string_view file;  // Of the recorded response; empty for one made up.
  absl::string_view status;
  std::vector<Header> headers;
  absl::string_view body;
  absl::Duration wait;  // Zero for one made up.
};

class Replay {
 public:
  explicit Replay(RecordedResponses responses)
      : responses_(std::move(responses)), matcher_(responses_) {}

  Answer AnswerTo(const Request& request);

 private:
  const RecordedResponses responses_;
  Matcher matcher_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_REPLAY_H_
