#include "matcher.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"

namespace eyelevel {
namespace {

// Spaces occur in none of the three, so that no two of them make the same key.
std::string Key(absl::string_view method, absl::string_view authority,
                absl::string_view path) {
  return absl::StrCat(method, " ", authority, " ", path);
}

size_t CommonPrefix(absl::string_view a, absl::string_view b) {
  return std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
         a.begin();
}

}  // namespace

absl::string_view ToString(MatchKind kind) {
  switch (kind) {
    case MatchKind::kExact:
      return "exact";
    case MatchKind::kPrefix:
      return "prefix";
    case MatchKind::kHead:
      return "head";
    case MatchKind::kPreflight:
      return "preflight";
    case MatchKind::kMiss:
      return "miss";
  }
}

Matcher::Matcher(const RecordedResponses& responses) {
  for (const auto& response : responses) {
    std::vector<Repeats>& queries =
        by_path_[Key(response->method, response->authority, response->path)];
    auto repeats = absl::c_find_if(
        queries, [&](const Repeats& r) { return r.query == response->query; });
    if (repeats == queries.end()) {
      repeats = queries.insert(
          queries.end(), Repeats{.query = response->query, .responses = {}});
    }
    repeats->responses.push_back(response.get());
  }
}

Match Matcher::Find(const Request& request) {
  if (const Match found = FindRecorded(request.method, request);
      found.recorded != nullptr) {
    return found;
  }
  if (request.method == "HEAD") {
    if (const Match found = FindRecorded("GET", request);
        found.recorded != nullptr) {
      return {MatchKind::kHead, found.recorded};
    }
  }
  if (request.method == "OPTIONS" && !request.origin.empty() &&
      !request.access_control_request_method.empty()) {
    return {MatchKind::kPreflight, nullptr};
  }
  return {MatchKind::kMiss, nullptr};
}

Match Matcher::FindRecorded(absl::string_view method, const Request& request) {
  const auto [path, query] = PathAndQuery(request.target);
  const auto found =
      by_path_.find(Key(method, NormalAuthority(request.authority), path));
  if (found == by_path_.end()) {
    return {MatchKind::kMiss, nullptr};
  }

  Repeats* nearest = nullptr;
  size_t longest = 0;
  for (Repeats& repeats : found->second) {
    if (repeats.query == query) {
      const size_t turn =
          std::min(repeats.asked++, repeats.responses.size() - 1);
      return {MatchKind::kExact, repeats.responses[turn]};
    }
    const size_t common = CommonPrefix(repeats.query, query);
    if (nearest == nullptr || common > longest) {
      nearest = &repeats;
      longest = common;
    }
  }
  return {MatchKind::kPrefix, nearest->responses.front()};
}

}  // namespace eyelevel
