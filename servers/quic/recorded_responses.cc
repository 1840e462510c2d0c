#include "recorded_responses.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <tuple>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "excerpt.h"
#include "response_files.h"
#include "site_limits.h"

namespace eyelevel {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kOriginalUrl = "x-original-url";
constexpr absl::string_view kOriginalMethod = "x-original-method";
constexpr absl::string_view kOriginalWait = "x-original-wait-ms";
constexpr absl::string_view kContentLength = "content-length";

// The overhead of each field: the colon, a space and the line's end.
constexpr size_t kFieldOverhead = 4;

std::optional<absl::string_view> Value(const std::vector<Header>& headers,
                                       absl::string_view name) {
  const auto found = absl::c_find_if(
      headers, [&](const Header& header) { return header.first == name; });
  if (found == headers.end()) {
    return std::nullopt;
  }
  return found->second;
}

bool IsRepeated(const std::vector<Header>& headers, absl::string_view name) {
  return absl::c_count_if(headers, [&](const Header& header) {
           return header.first == name;
         }) > 1;
}

// Whether the testbed has added the field.
bool IsOriginal(absl::string_view name) {
  return name == kOriginalUrl || name == kOriginalMethod ||
         name == kOriginalWait;
}

// Connection-specific fields may not occur in HTTP/3 (RFC 9114 section 4.2),
// and alt-svc would send the browser away from the server under test.
bool IsReplayed(absl::string_view name) {
  static constexpr absl::string_view kNotReplayed[] = {
      "alt-svc",           "alternate-protocol",
      "connection",        "keep-alive",
      "proxy-connection",  "te",
      "transfer-encoding", "upgrade"};
  return !IsOriginal(name) && !absl::c_linear_search(kNotReplayed, name);
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
  // By name, the place of its group of fields.
  absl::flat_hash_map<absl::string_view, size_t> places = {{"content-type", 0},
                                                           {kContentLength, 1}};
  const absl::string_view location = Value(recorded, "location").value_or("/");
  if (!absl::StartsWith(location, "/")) {
    places.emplace("location", places.size());
  }
  std::vector<std::vector<Header>> groups(places.size());
  for (const Header& header : recorded) {
    if (!IsReplayed(header.first)) {
      continue;
    }
    const auto [place, is_new] =
        places.try_emplace(header.first, groups.size());
    if (is_new) {
      groups.emplace_back();
    }
    groups[place->second].push_back(header);
  }
  std::vector<Header> sent;
  for (const std::vector<Header>& group : groups) {
    absl::c_copy(group, std::back_inserter(sent));
  }
  return sent;
}

// RFC 9110 section 6.4.1: these end after the headers, whatever they say.
bool IsWithoutBody(absl::string_view status) {
  return status == "204" || status == "304";
}

// The methods that an import takes: those of pages (Fetch standard, section
// 2.2.1), in letters that NGINX accepts.
bool IsMethod(absl::string_view text) {
  return !text.empty() && text != "CONNECT" && text != "TRACE" &&
         text != "TRACK" && absl::c_all_of(text, [](unsigned char c) {
           return absl::ascii_isupper(c) || c == '_' || c == '-';
         });
}

// A name of a host, or of a host and a port, in lower case.
bool IsAuthority(absl::string_view text) {
  const size_t host_end = std::min(text.find(':'), text.size());
  const absl::string_view host = text.substr(0, host_end);
  if (host_end < text.size()) {
    const absl::string_view port = text.substr(host_end + 1);
    if (port.empty() || port.size() > 5 ||
        !absl::c_all_of(port, absl::ascii_isdigit)) {
      return false;
    }
  }
  return !host.empty() && host.front() != '.' &&
         !absl::StrContains(host, "..") &&
         absl::c_all_of(host, [](unsigned char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
                  c == '.' || c == '-' || c == '_';
         });
}

// Removes whitespace between colon and value, and after it (RFC 9110 section
// 5.6.3).
absl::string_view WithoutPadding(absl::string_view text) {
  const size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(first);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

// A field name (RFC 9110 section 5.6.2).
bool IsToken(absl::string_view text) {
  return !text.empty() && absl::c_all_of(text, [](unsigned char c) {
    return absl::ascii_isalnum(c) ||
           absl::StrContains("!#$%&'*+-.^_`|~", static_cast<char>(c));
  });
}

// Takes the digits off that `text` begins with. Are there any?
bool ConsumeDigits(absl::string_view& text) {
  const size_t end =
      std::min(text.find_first_not_of("0123456789"), text.size());
  text.remove_prefix(end);
  return end > 0;
}

// A time of "12", "12.5", or "1e-05" milliseconds, as importers write it; no
// longer than a server may take.
std::optional<absl::Duration> ThinkTime(absl::string_view text) {
  absl::string_view rest = text;
  bool valid = ConsumeDigits(rest);
  if (absl::ConsumePrefix(&rest, ".")) {
    valid = ConsumeDigits(rest) && valid;
  }
  if (absl::ConsumePrefix(&rest, "e")) {
    if (!absl::ConsumePrefix(&rest, "-")) {
      absl::ConsumePrefix(&rest, "+");
    }
    valid = ConsumeDigits(rest) && valid;
  }
  double ms;
  if (!valid || !rest.empty() || !absl::SimpleAtod(text, &ms)) {
    return std::nullopt;
  }
  return absl::Milliseconds(std::min(ms, kMaxThinkTimeMs));
}

absl::Status SetUrl(absl::string_view url, RecordedResponse& response) {
  if (url.size() > kMaxUrlBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Url has ", url.size(),
                     " bytes, more than ", kMaxUrlBytes));
  }
  if (!absl::c_all_of(url, absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Url is no URL: ", Excerpt(url)));
  }
  absl::string_view rest = url;
  if (!absl::ConsumePrefix(&rest, "https://")) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Url is not https: ", Excerpt(url)));
  }
  const auto [authority, target] = AuthorityAndTarget(rest);
  response.authority = NormalAuthority(authority);
  if (!IsAuthority(response.authority)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its X-Original-Url has no host that can be served: ", Excerpt(url)));
  }
  std::tie(response.path, response.query) = PathAndQuery(target);
  return absl::OkStatus();
}

// Which request the response answers, and after what time.
absl::Status SetOriginals(const std::vector<Header>& recorded,
                          RecordedResponse& response) {
  const auto url = Value(recorded, kOriginalUrl);
  if (!url.has_value()) {
    return absl::InvalidArgumentError("it has no X-Original-Url");
  }
  if (const absl::Status valid = SetUrl(*url, response); !valid.ok()) {
    return valid;
  }
  const auto method = Value(recorded, kOriginalMethod);
  if (!method.has_value()) {
    return absl::InvalidArgumentError("it has no X-Original-Method");
  }
  if (!IsMethod(*method)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its X-Original-Method is none of a page: ", Excerpt(*method)));
  }
  response.method = *method;
  const auto wait = Value(recorded, kOriginalWait);
  const auto time = ThinkTime(wait.value_or("0"));
  if (!time.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("its X-Original-Wait-Ms is no time: ", Excerpt(*wait)));
  }
  response.wait = *time;
  return absl::OkStatus();
}

// Whether a line is broken by other than CRLF. To NGINX that is a line's end,
// to HTTP/3 it is not.
bool HasStrayBreak(absl::string_view head) {
  for (size_t i = 0; i < head.size(); ++i) {
    const bool is_crlf = head.substr(i, 2) == "\r\n";
    if (!is_crlf && (head[i] == '\r' || head[i] == '\n' || head[i] == '\0')) {
      return true;
    }
    i += is_crlf;
  }
  return false;
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

// Takes the header fields off `head`, which is a part of `text`: their names in
// lower case, in place, so that they can be views like everything else.
absl::StatusOr<std::vector<Header>> TakeHeaders(absl::string_view head,
                                                absl::Span<char> text) {
  std::vector<Header> headers;
  size_t fields = 0, bytes = 0;
  while (!head.empty()) {
    const absl::string_view line = TakeLine(head);
    const size_t colon = std::min(line.find(':'), line.size());
    if (colon == line.size() || !IsToken(line.substr(0, colon))) {
      return absl::InvalidArgumentError(
          absl::StrCat("a header line without a name: ", Excerpt(line)));
    }
    char* const name = text.data() + (line.data() - text.data());
    std::transform(name, name + colon, name, absl::ascii_tolower);
    headers.emplace_back(line.substr(0, colon),
                         WithoutPadding(line.substr(colon + 1)));
    if (const auto& [field, value] = headers.back(); !IsOriginal(field)) {
      fields += 1;
      bytes += field.size() + value.size() + kFieldOverhead;
    }
    if (fields > kMaxHeaderFields || bytes > kMaxHeaderBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "it has more than ", kMaxHeaderFields, " header fields, or ",
          kMaxHeaderBytes, " bytes of them"));
    }
  }
  return headers;
}

// Fills in everything that `text` tells.
absl::Status Parse(absl::Span<char> text, RecordedResponse& response) {
  const absl::string_view whole(text.data(), text.size());
  const size_t head_end = whole.find("\r\n\r\n");
  if (head_end == whole.npos) {
    return absl::InvalidArgumentError("no blank line after the headers");
  }
  if (head_end > kMaxHeadBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "its header fields have more than ", kMaxHeadBytes, " bytes"));
  }
  absl::string_view head = whole.substr(0, head_end);
  if (HasStrayBreak(head)) {
    return absl::InvalidArgumentError("a line break in its header fields");
  }
  response.body = whole.substr(head_end + 4);

  const std::optional<absl::string_view> status = StatusOf(TakeLine(head));
  if (!status.has_value()) {
    return absl::InvalidArgumentError("it does not begin with a status line");
  }
  if (*status < "200" || *status > "599") {
    return absl::InvalidArgumentError(
        absl::StrCat("its status is none that can be replayed: ", *status));
  }
  response.status = *status;

  absl::StatusOr<std::vector<Header>> headers = TakeHeaders(head, text);
  if (!headers.ok()) {
    return headers.status();
  }
  std::vector<Header>& recorded = *headers;
  // Other servers than this one might take another of them.
  for (const absl::string_view name :
       {kOriginalUrl, kOriginalMethod, kOriginalWait, kContentLength}) {
    if (IsRepeated(recorded, name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("it has ", name, " more than once"));
    }
  }
  if (const absl::Status valid = SetOriginals(recorded, response);
      !valid.ok()) {
    return valid;
  }

  if (IsWithoutBody(response.status)) {
    response.body = {};
    std::erase_if(recorded, [](const Header& header) {
      return header.first == kContentLength;
    });
  }
  response.content_range = Value(recorded, "content-range").value_or("");
  response.headers = SentHeaders(std::move(recorded));
  // HTTP/3 calls a message of another length malformed and the browser would
  // drop it.
  const auto length = Value(response.headers, kContentLength);
  if (length.has_value() && response.method != "HEAD" &&
      *length != absl::StrCat(response.body.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat("its content-length is ", Excerpt(*length),
                     ", its body has ", response.body.size(), " bytes"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RecordedResponses> LoadRecordedResponses(
    const fs::path& folder) {
  absl::StatusOr<std::vector<std::string>> files = ListResponseFiles(folder);
  if (!files.ok()) {
    return files.status();
  }
  RecordedResponses responses;
  const auto memory = std::make_shared<SharedMemory>();
  uint64_t bytes = 0;
  for (std::string& file : *files) {
    const fs::path path = folder / file;
    auto response = std::make_unique<RecordedResponse>();
    const absl::StatusOr<absl::Span<char>> text = ReadResponseFile(
        path, std::min(kMaxFileBytes, kMaxSiteBytes - bytes), *memory);
    absl::Status status = text.status();
    if (status.ok()) {
      bytes += text->size();
      status = Parse(*text, *response);
    }
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "broken response file ", path.string(), ": ", status.message()));
    }
    response->file = std::move(file);
    response->memory = memory;
    responses.push_back(std::move(response));
  }
  if (responses.empty()) {
    return absl::NotFoundError(
        absl::StrCat("no response in ", folder.string(), "/<host>/<file>"));
  }
  if (absl::Status sealed = memory->Seal(); !sealed.ok()) {
    return sealed;
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
