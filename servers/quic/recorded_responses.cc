#include "recorded_responses.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace eyelevel {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kOriginalUrl = "x-original-url";
constexpr absl::string_view kOriginalMethod = "x-original-method";
constexpr absl::string_view kOriginalWait = "x-original-wait-ms";

std::optional<absl::string_view> Value(const std::vector<Header>& headers,
                                       absl::string_view name) {
  const auto found = absl::c_find_if(
      headers, [&](const Header& header) { return header.first == name; });
  if (found == headers.end()) {
    return std::nullopt;
  }
  return found->second;
}

// Connection-specific fields may not occur in HTTP/3 (RFC 9114 section 4.2),
// and alt-svc would send the browser away from the server under test.
bool IsReplayed(absl::string_view name) {
  static constexpr absl::string_view kNotReplayed[] = {
      "alt-svc",           "alternate-protocol",
      "connection",        "keep-alive",
      "proxy-connection",  "te",
      "transfer-encoding", "upgrade",
      kOriginalMethod,     kOriginalUrl,
      kOriginalWait};
  return !absl::c_linear_search(kNotReplayed, name);
}

// The headers as NGINX sends them on the TCP side: those that it keeps by
// themselves first, an absolute location among them, then the others as
// recorded, those of one name together.
std::vector<Header> SentHeaders(std::vector<Header> recorded) {
  for (const Header& header : {kDefaultServer, kDefaultDate}) {
    if (!Value(recorded, header.first).has_value()) {
      recorded.push_back(header);
    }
  }
  std::vector<absl::string_view> names = {"content-type", "content-length"};
  const absl::string_view location = Value(recorded, "location").value_or("/");
  if (!absl::StartsWith(location, "/")) {
    names.push_back("location");
  }
  for (const auto& [name, value] : recorded) {
    if (IsReplayed(name) && !absl::c_linear_search(names, name)) {
      names.push_back(name);
    }
  }
  std::vector<Header> sent;
  for (const absl::string_view name : names) {
    absl::c_copy_if(recorded, std::back_inserter(sent),
                    [&](const Header& header) { return header.first == name; });
  }
  return sent;
}

// RFC 9110 section 6.4.1: these end after the headers, whatever they say.
bool IsWithoutBody(absl::string_view status) {
  return status[0] == '1' || status == "204" || status == "304";
}

absl::Status SetUrl(absl::string_view url, RecordedResponse& response) {
  if (!absl::ConsumePrefix(&url, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Url is not https: ", url));
  }
  const auto [authority, target] = AuthorityAndTarget(url);
  response.authority = NormalAuthority(authority);
  if (response.authority.empty()) {
    return absl::InvalidArgumentError("its X-Original-Url has no host");
  }
  std::tie(response.path, response.query) = PathAndQuery(target);
  return absl::OkStatus();
}

// Takes the first line off `head`; its line end is CRLF.
absl::string_view TakeLine(absl::string_view& head) {
  const size_t end = std::min(head.find("\r\n"), head.size());
  const absl::string_view line = head.substr(0, end);
  head.remove_prefix(std::min(end + 2, head.size()));
  return line;
}

// "HTTP/1.1 200 OK" gives "200".
std::optional<absl::string_view> StatusOf(absl::string_view line) {
  const size_t space = line.find(' ');
  if (!absl::StartsWith(line, "HTTP/") || space == line.npos) {
    return std::nullopt;
  }
  line.remove_prefix(space + 1);
  const absl::string_view status = line.substr(0, 3);
  const bool ends = line.size() == 3 || (line.size() > 3 && line[3] == ' ');
  if (!ends || !absl::c_all_of(status, absl::ascii_isdigit)) {
    return std::nullopt;
  }
  return status;
}

// Fills in everything that `text` tells.
absl::Status Parse(RecordedResponse& response) {
  const size_t head_end = response.text.find("\r\n\r\n");
  if (head_end == std::string::npos) {
    return absl::InvalidArgumentError("no blank line after the headers");
  }
  absl::string_view head = absl::string_view(response.text).substr(0, head_end);
  response.body = absl::string_view(response.text).substr(head_end + 4);

  const std::optional<absl::string_view> status = StatusOf(TakeLine(head));
  if (!status.has_value()) {
    return absl::InvalidArgumentError("it does not begin with a status line");
  }
  response.status = *status;

  std::vector<Header> recorded;
  while (!head.empty()) {
    const absl::string_view line = TakeLine(head);
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("a header line without a name: ", line.substr(0, 60)));
    }
    // In place, so that names can be views of the file's text like everything
    // else.
    char* const name =
        response.text.data() + (line.data() - response.text.data());
    std::transform(name, name + colon, name, absl::ascii_tolower);
    recorded.emplace_back(line.substr(0, colon),
                          absl::StripAsciiWhitespace(line.substr(colon + 1)));
  }

  response.method = Value(recorded, kOriginalMethod).value_or("GET");
  const std::optional<absl::string_view> url = Value(recorded, kOriginalUrl);
  if (!url.has_value()) {
    return absl::InvalidArgumentError("it has no X-Original-Url");
  }
  if (const absl::Status valid = SetUrl(*url, response); !valid.ok()) {
    return valid;
  }

  double wait_ms = 0;
  if (const auto wait = Value(recorded, kOriginalWait);
      wait.has_value() &&
      (!absl::SimpleAtod(*wait, &wait_ms) || !(wait_ms >= 0))) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Wait-Ms is no time: ", *wait));
  }
  response.wait = absl::Milliseconds(wait_ms);

  if (IsWithoutBody(response.status)) {
    response.body = {};
    std::erase_if(recorded, [](const Header& header) {
      return header.first == "content-length";
    });
  }
  response.content_range = Value(recorded, "content-range").value_or("");
  response.headers = SentHeaders(std::move(recorded));
  const std::optional<absl::string_view> length =
      Value(response.headers, "content-length");
  size_t bytes = 0;
  if (length.has_value() && response.method != "HEAD" &&
      (!absl::SimpleAtoi(*length, &bytes) || bytes != response.body.size())) {
    // HTTP/3 calls such a message malformed and the browser would drop it.
    return absl::InvalidArgumentError(
        absl::StrCat("its content-length is ", *length, ", its body has ",
                     response.body.size(), " bytes"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadFile(const fs::path& path) {
  std::error_code error;
  const auto size = fs::file_size(path, error);
  if (error) {
    return absl::UnavailableError(error.message());
  }
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), text.size())) {
    return absl::UnavailableError(std::strerror(errno));
  }
  return text;
}

// What lies in `folder`, in no order.
absl::StatusOr<std::vector<fs::path>> List(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot read the folder ", folder.string(), ": ", error.message()));
  }
  return paths;
}

}  // namespace

absl::StatusOr<RecordedResponses> LoadRecordedResponses(
    const fs::path& folder) {
  absl::StatusOr<std::vector<fs::path>> hosts = List(folder);
  if (!hosts.ok()) {
    return hosts.status();
  }
  std::vector<fs::path> paths;
  for (const fs::path& host : *hosts) {
    if (!fs::is_directory(host)) {
      continue;
    }
    absl::StatusOr<std::vector<fs::path>> files = List(host);
    if (!files.ok()) {
      return files.status();
    }
    absl::c_copy_if(
        *files, std::back_inserter(paths),
        [](const fs::path& file) { return fs::is_regular_file(file); });
  }
  absl::c_sort(paths, [](const fs::path& a, const fs::path& b) {
    return std::pair(a.filename(), a) < std::pair(b.filename(), b);
  });

  RecordedResponses responses;
  for (const fs::path& path : paths) {
    auto response = std::make_unique<RecordedResponse>();
    response->file = (path.parent_path().filename() / path.filename()).string();
    absl::StatusOr<std::string> text = ReadFile(path);
    absl::Status status = text.status();
    if (status.ok()) {
      response->text = *std::move(text);
      status = Parse(*response);
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "broken response file ", path.string(), ": ", status.message()));
    }
    responses.push_back(std::move(response));
  }
  if (responses.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no response in ", folder.string(), "/<host>/<file>"));
  }
  return responses;
}

std::string NormalAuthority(absl::string_view authority) {
  std::string normal = absl::AsciiStrToLower(authority);
  if (absl::EndsWith(normal, ":443")) {
    normal.resize(normal.size() - 4);
  }
  return normal;
}

std::pair<absl::string_view, absl::string_view> AuthorityAndTarget(
    absl::string_view url) {
  url = url.substr(0, url.find('#'));
  const size_t authority_end = std::min(url.find_first_of("/?"), url.size());
  return {url.substr(0, authority_end), url.substr(authority_end)};
}

std::pair<absl::string_view, absl::string_view> PathAndQuery(
    absl::string_view target) {
  const size_t question_mark = std::min(target.find('?'), target.size());
  const absl::string_view path = target.substr(0, question_mark);
  const absl::string_view query =
      target.substr(std::min(question_mark + 1, target.size()));
  return {path.empty() ? "/" : path, query};
}

}  // namespace eyelevel
