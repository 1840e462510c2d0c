// Loads mutated response folders and answers requests of them, under libFuzzer.
//
// The input is a list of parts, each ended by a record separator (0x1e). The
// first has requests as `--match` reads them. Each other makes an entry of the
// folder: a letter, its path, a line's end, and its content. The letter is f
// for a file, d for a folder, l for a link (the content is where it leads), or
// p for a pipe. The folder is made in the current one.

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "match_lines.h"
#include "recorded_responses.h"
#include "replay.h"
#include "site_limits.h"

namespace eyelevel {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kFolder = "folder";
constexpr char kPartEnd = '\x1e';
// The most bytes of an error's one line: the names of a file's folders and of
// the file, and the excerpt of it.
constexpr size_t kMaxErrorBytes = 4096;
// The two fields that are added where they are missing, and their bytes.
constexpr size_t kDefaultFields = 2, kDefaultBytes = 47;

void Require(bool holds, absl::string_view promise) {
  if (!holds) {
    std::fprintf(stderr, "broken: %s\n", std::string(promise).c_str());
    std::abort();
  }
}

// `text` as a path in the folder, whatever it says.
fs::path InFolder(absl::string_view text) {
  fs::path path(kFolder);
  for (const absl::string_view name : absl::StrSplit(text, '/')) {
    if (!name.empty() && name != "." && name != ".." &&
        !absl::StrContains(name, '\0')) {
      path /= name;
    }
  }
  return path;
}

// An entry that cannot be made, such as a file in a file, is left out.
void MakeEntry(absl::string_view part) {
  if (part.empty()) {
    return;
  }
  const size_t line_end = std::min(part.find('\n'), part.size());
  const fs::path path = InFolder(part.substr(1, line_end - 1));
  const std::string content(part.substr(std::min(line_end + 1, part.size())));
  std::error_code ignored;
  fs::create_directories(path.parent_path(), ignored);
  switch (part[0]) {
    case 'd':
      fs::create_directory(path, ignored);
      break;
    case 'l':
      fs::create_symlink(content.c_str(), path, ignored);
      break;
    case 'p':
      static_cast<void>(mkfifo(path.c_str(), 0600));
      break;
    default:
      if (!fs::exists(fs::symlink_status(path, ignored))) {
        std::ofstream(path, std::ios::binary) << content;
      }
  }
}

void RequireOneLine(const absl::Status& error) {
  Require(!error.message().empty() && error.message().size() < kMaxErrorBytes,
          "an error has a text of a line's length");
  // Everything that is quoted is escaped, and the folder has a plain name.
  Require(absl::c_all_of(error.message(),
                         [](unsigned char c) {
                           return absl::ascii_isprint(c) || c >= 0x80;
                         }),
          "an error has one line that can be printed");
}

void RequireSendable(const RecordedResponse& response) {
  Require(absl::c_all_of(response.file, absl::ascii_isgraph),
          "a file's name is printable");
  Require(!response.authority.empty(), "a response has an authority");
  Require(response.path.starts_with('/'), "a path begins with a slash");
  Require(response.status.size() == 3 && response.status >= "200" &&
              response.status <= "599",
          "a status is one that can be replayed");
  Require(response.wait >= absl::ZeroDuration() &&
              response.wait <= absl::Milliseconds(kMaxThinkTimeMs),
          "a wait is bounded");
  size_t bytes = 0;
  for (const auto& [name, value] : response.headers) {
    bytes += name.size() + value.size();
    Require(!name.empty() && name != "x-original-url" &&
                name != "x-original-method" && name != "x-original-wait-ms" &&
                absl::c_none_of(name, absl::ascii_isupper),
            "a field's name is in lower case and not the testbed's");
    Require(value.find_first_of(absl::string_view("\0\r\n", 3)) == value.npos,
            "a field is one line");
    if (name == "content-length" && response.method != "HEAD") {
      Require(value == absl::StrCat(response.body.size()),
              "a length is the body's");
    }
  }
  Require(bytes <= kMaxHeaderBytes + kDefaultBytes &&
              response.headers.size() <= kMaxHeaderFields + kDefaultFields,
          "header fields are bounded");
}

void RequireAnswers(const std::string& requests, Replay& replay) {
  std::istringstream lines(requests);
  std::ostringstream answers;
  const absl::Status status = MatchLines(lines, replay, answers);
  if (!status.ok()) {
    RequireOneLine(status);
  }
  const std::string text = std::move(answers).str();
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || line[0] == '\t') {
      continue;
    }
    const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
    size_t bytes;
    Require(fields.size() == 4 && fields[2].size() == 3 &&
                absl::SimpleAtoi(fields[3], &bytes),
            "an answer has a kind, a file, a status and a length");
  }
}

}  // namespace
}  // namespace eyelevel

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace eyelevel;
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  fs::remove_all(kFolder);
  fs::create_directory(kFolder);
  std::string requests;
  bool first = true;
  for (const absl::string_view part : absl::StrSplit(input, kPartEnd)) {
    if (std::exchange(first, false)) {
      requests = std::string(part);
    } else {
      MakeEntry(part);
    }
  }
  absl::StatusOr<RecordedResponses> responses =
      LoadRecordedResponses(fs::path(kFolder));
  if (!responses.ok()) {
    RequireOneLine(responses.status());
    return 0;
  }
  for (const auto& response : *responses) {
    RequireSendable(*response);
  }
  Replay replay(*std::move(responses));
  RequireAnswers(requests, replay);
  return 0;
}
