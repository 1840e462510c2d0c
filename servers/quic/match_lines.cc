#include "match_lines.h"

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "excerpt.h"
#include "recorded_responses.h"

namespace eyelevel {
namespace {

constexpr size_t kFields = 8;

}  // namespace

absl::Status MatchLines(std::istream& requests, Replay& replay,
                        std::ostream& answers) {
  std::string line;
  while (std::getline(requests, line)) {
    std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    if (fields.size() < 2 || fields.size() > kFields ||
        !absl::ConsumePrefix(&fields[1], "https://")) {
      return absl::InvalidArgumentError(
          absl::StrCat("not METHOD<TAB>https://…: ", Excerpt(line)));
    }
    fields.resize(kFields);
    const auto [authority, target] = AuthorityAndTarget(fields[1]);
    const Answer answer = replay.AnswerTo({
        .method = fields[0],
        .authority = authority,
        .target = target,
        .origin = fields[2],
        .access_control_request_method = fields[3],
        .access_control_request_headers = fields[4],
        .range = fields[5],
        .if_none_match = fields[6],
        .if_modified_since = fields[7],
    });
    answers << ToString(answer.kind) << '\t' << answer.file << '\t'
            << answer.status << '\t' << answer.body.size() << '\n';
    for (const auto& [name, value] : answer.headers) {
      answers << '\t' << name << ": " << value << '\n';
    }
  }
  return absl::OkStatus();
}

}  // namespace eyelevel
