// Which recorded response answers a request: the rule both servers follow.
//
// Among the recorded exchanges of the request's authority:
//
// 1. exact: same method, path and query. Recorded several times, those that fit
//    best (fit.h) are served in recorded order, each once, the last of them
//    again and again. Bodies of requests do not matter.
// 2. prefix: same method and path; the longest common prefix of the queries;
//    ties go to the earliest. The first of its recordings that fit best is
//    served.
// 3. head: a HEAD that was not recorded is answered like a GET, without the
//    body.
// 4. preflight: a CORS preflight that was not recorded is granted.
// 5. miss: 404.
//
// servers/matching.py is the same rule for the TCP side;
// tests/vectors/matching.json holds both to it.

#ifndef EYELEVEL_SERVERS_QUIC_MATCHER_H_
#define EYELEVEL_SERVERS_QUIC_MATCHER_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"
#include "recorded_responses.h"

namespace eyelevel {

enum class MatchKind { kExact, kPrefix, kHead, kPreflight, kMiss };

// The kind's word in the request log.
absl::string_view ToString(MatchKind kind);

// The parts of a request that decide its answer. Headers that were not sent are
// empty.
struct Request {
  absl::string_view method;
  absl::string_view authority;
  absl::string_view target;
  absl::string_view origin;
  absl::string_view access_control_request_method;
  absl::string_view access_control_request_headers;
  absl::string_view range;
  absl::string_view if_none_match;
  absl::string_view if_modified_since;
};

struct Match {
  MatchKind kind;
  const RecordedResponse* recorded;  // Null for kPreflight and kMiss.
};

// Finds recorded responses; remembers which were served, to serve repeats in
// order.
class Matcher {
 public:
  // `responses` must outlive the matcher.
  explicit Matcher(const RecordedResponses& responses);

  Match Find(const Request& request);

 private:
  using Responses = std::vector<const RecordedResponse*>;

  // The recordings of one query, in recorded order.
  struct Repeats {
    absl::string_view query;
    Responses responses;
  };

  Match FindRecorded(absl::string_view method, const Request& request);

  // The next of `responses` to be served.
  const RecordedResponse* Next(const Responses& responses);

  // By method, authority and path; the queries of one path in recorded order.
  absl::flat_hash_map<std::string, std::vector<Repeats>> by_path_;
  absl::flat_hash_set<const RecordedResponse*> served_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_MATCHER_H_
