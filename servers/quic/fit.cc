#include "fit.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"

namespace eyelevel {
namespace {

struct ContentRange {
  uint64_t first;
  uint64_t last;
  std::optional<uint64_t> total;
};

// Digits alone, as many as any file's length has.
std::optional<uint64_t> Number(absl::string_view text) {
  uint64_t number;
  if (text.size() > 18 || !absl::c_all_of(text, absl::ascii_isdigit) ||
      !absl::SimpleAtoi(text, &number)) {
    return std::nullopt;
  }
  return number;
}

// Splits at the first `separator`, which must be there.
std::optional<std::pair<absl::string_view, absl::string_view>> Split(
    absl::string_view text, char separator) {
  const size_t at = text.find(separator);
  if (at == text.npos) {
    return std::nullopt;
  }
  return std::pair(text.substr(0, at), text.substr(at + 1));
}

// "bytes 0-99/1000", where the total may be "*".
std::optional<ContentRange> ParseContentRange(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "bytes ")) {
    return std::nullopt;
  }
  const auto range_and_total = Split(text, '/');
  if (!range_and_total.has_value()) {
    return std::nullopt;
  }
  const auto ends = Split(range_and_total->first, '-');
  if (!ends.has_value()) {
    return std::nullopt;
  }
  const auto first = Number(ends->first), last = Number(ends->second);
  const auto total = Number(range_and_total->second);
  if (!first.has_value() || !last.has_value() ||
      (!total.has_value() && range_and_total->second != "*")) {
    return std::nullopt;
  }
  return ContentRange{.first = *first, .last = *last, .total = total};
}

// "bytes=0-99", "bytes=100-" or, for the last ones, "bytes=-100"; a client that
// asks for several ranges at once is answered as if none fitted.
Fit FitOfPart(absl::string_view range, absl::string_view content_range) {
  const std::optional<ContentRange> recorded = ParseContentRange(content_range);
  if (!recorded.has_value() || !absl::ConsumePrefix(&range, "bytes=")) {
    return Fit::kNot;
  }
  const auto ends = Split(range, '-');
  if (!ends.has_value()) {
    return Fit::kNot;
  }
  const auto first = Number(ends->first), last = Number(ends->second);
  const bool to_end =
      recorded->total.has_value() && recorded->last + 1 == *recorded->total;
  if (ends->first.empty()) {
    const bool fits =
        last.has_value() && to_end &&
        recorded->first == *recorded->total - std::min(*last, *recorded->total);
    return fits ? Fit::kAsAsked : Fit::kNot;
  }
  if (first != recorded->first || (!ends->second.empty() && !last)) {
    return Fit::kNot;
  }
  if (!last.has_value()) {
    return to_end || !recorded->total ? Fit::kAsAsked : Fit::kShorter;
  }
  if (recorded->last > *last) {
    return Fit::kNot;
  }
  return recorded->last == *last || to_end ? Fit::kAsAsked : Fit::kShorter;
}

}  // namespace

Fit FitOf(absl::string_view range, bool conditional, absl::string_view status,
          absl::string_view content_range) {
  if (status == "304") {
    return conditional ? Fit::kAsAsked : Fit::kNot;
  }
  if (status == "206") {
    return range.empty() ? Fit::kNot : FitOfPart(range, content_range);
  }
  return range.empty() ? Fit::kAsAsked : Fit::kWhole;
}

}  // namespace eyelevel
