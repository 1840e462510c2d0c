// Which recorded response answers a request: the rule both servers follow.
//
// Among the recorded exchanges of the request's authority:
//
// 1. exact: same method, path and query. Recorded several times, they are
//    served in recorded order, the last one again and again.
// 2. prefix: same method and path; the longest common prefix of the queries;
//    ties go to the earliest.
// 3. head: a HEAD that was not recorded is answered like a GET, without the
//    body.
// 4. preflight: a CORS preflight that was not recorded is granted.
// 5. miss: 404.
//
// servers/matching.py is the same rule for the TCP side;
// tests/vectors/matching.json holds both to it.

#ifndef EYELEVEL_SERVERS_QUIC_MATCHER_H_
#define EYELEVEL_SERVERS_QUIC_MATCHER_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "recorded_responses.h"

namespace eyelevel {

enum class MatchKind { kExact, kPrefix, kHead, kPreflight, kMiss };

// The kind's word in the request log.
absl::string_view ToString(MatchKind kind);

// What of a request decides its answer. Headers that were not sent are empty.
struct Request {
  absl::string_view method;
  absl::string_view authority;
  absl::string_view target;
  absl::string_view origin;
  absl::string_view access_control_request_method;
  absl::string_view access_control_request_headers;
};

struct Match {
  MatchKind kind;
  const RecordedResponse* recorded;  // Null for kPreflight and kMiss.
};

// Finds recorded responses; remembers how often each was asked for, to serve
// repeats in order.
class Matcher {
 public:
  // `responses` must outlive the matcher.
  explicit Matcher(const RecordedResponses& responses);

  Match Find(const Request& request);

 private:
  // The recordings of one query, and how often it was asked for.
  struct Repeats {
    absl::string_view query;
    std::vector<const RecordedResponse*> responses;
    size_t asked = 0;
  };

  Match FindRecorded(absl::string_view method, const Request& request);

  // By method, authority and path; the queries of one path in recorded order.
  absl::flat_hash_map<std::string, std::vector<Repeats>> by_path_;
};

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_MATCHER_H_
