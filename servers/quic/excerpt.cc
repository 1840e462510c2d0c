#include "excerpt.h"

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace eyelevel {
namespace {

constexpr size_t kMaxBytes = 80;

}  // namespace

std::string Excerpt(absl::string_view text) {
  return absl::StrCat(absl::CHexEscape(text.substr(0, kMaxBytes)),
                      text.size() > kMaxBytes ? "..." : "");
}

}  // namespace eyelevel
