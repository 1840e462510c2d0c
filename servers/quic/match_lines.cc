#include "match_lines.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace eyelevel {
namespace {

constexpr size_t kFields = 5;

}  // namespace

absl::Status MatchLines(std::istream& requests, Replay& replay,
                        std::ostream& answers) {
  std::string line;
  while (std::getline(requests, line)) {
    std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    if (fields.size() < 2 || fields.size() > kFields ||
        !absl::ConsumePrefix(&fields[1], "https://")) {
      return absl::InvalidArgumentError(
          absl::StrCat("not METHOD<TAB>https://…: ", line));
    }
    fields.resize(kFields);
    const absl::string_view url = fields[1].substr(0, fields[1].find('#'));
    const size_t authority_end = std::min(url.find_first_of("/?"), url.size());
    const Answer answer = replay.AnswerTo({
        .method = fields[0],
        .authority = url.substr(0, authority_end),
        .target = url.substr(authority_end),
        .origin = fields[2],
        .access_control_request_method = fields[3],
        .access_control_request_headers = fields[4],
    });
    answers << ToString(answer.kind) << '\t' << answer.file << '\t'
            << answer.status << '\t' << answer.body.size() << '\n';
    for (const auto& [name, value] : answer.headers)
      answers << '\t' << name << ": " << value << '\n';
  }
  return absl::OkStatus();
}

}  // namespace eyelevel
