#include "matcher.h"

#include <algorithm>
#include <cstddef>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "fit.h"

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

// Those of `responses` that fit `request` best, in recorded order.
std::vector<const RecordedResponse*> BestFitting(
    const std::vector<const RecordedResponse*>& responses,
    const Request& request) {
  const bool conditional =
      !request.if_none_match.empty() || !request.if_modified_since.empty();
  std::vector<const RecordedResponse*> fitting;
  Fit best = Fit::kNot;
  for (const RecordedResponse* response : responses) {
    const Fit fit = FitOf(request.range, conditional, response->status,
                          response->content_range);
    if (fit < best) {
      best = fit;
      fitting.clear();
    }
    if (fit == best) {
      fitting.push_back(response);
    }
  }
  return fitting;
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
  // By path and query, the place among the queries of the path.
  absl::flat_hash_map<std::string, size_t> places;
  for (const auto& response : responses) {
    const std::string path =
        Key(response->method, response->authority, response->path);
    std::vector<Repeats>& queries = by_path_[path];
    const auto [place, is_new] = places.try_emplace(
        absl::StrCat(path, "?", response->query), queries.size());
    if (is_new) {
      queries.push_back({.query = response->query, .responses = {}});
    }
    queries[place->second].responses.push_back(response.get());
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

  const Repeats* nearest = nullptr;
  size_t longest = 0;
  for (const Repeats& repeats : found->second) {
    if (repeats.query == query) {
      return {MatchKind::kExact, Next(BestFitting(repeats.responses, request))};
    }
    const size_t common = CommonPrefix(repeats.query, query);
    if (nearest == nullptr || common > longest) {
      nearest = &repeats;
      longest = common;
    }
  }
  return {MatchKind::kPrefix, BestFitting(nearest->responses, request).front()};
}

const RecordedResponse* Matcher::Next(const Responses& responses) {
  const auto next =
      absl::c_find_if(responses, [&](const RecordedResponse* response) {
        return !served_.contains(response);
      });
  const RecordedResponse* const chosen =
      next == responses.end() ? responses.back() : *next;
  served_.insert(chosen);
  return chosen;
}

}  // namespace eyelevel
