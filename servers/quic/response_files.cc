#include "response_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "excerpt.h"
#include "site_limits.h"

namespace eyelevel {
namespace {

namespace fs = std::filesystem;

constexpr size_t kOrderDigits = 5;

// "00007-logo.png", as a site names its files. So a name can neither break a
// line of the request log nor lead elsewhere.
bool IsResponseName(absl::string_view name) {
  return name.size() > kOrderDigits + 1 &&
         absl::c_all_of(name.substr(0, kOrderDigits), absl::ascii_isdigit) &&
         name[kOrderDigits] == '-' &&
         absl::c_all_of(name.substr(kOrderDigits + 1), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
         });
}

absl::string_view OwnName(absl::string_view name) {
  return name.substr(name.rfind('/') + 1);
}

absl::Status ErrorIn(const fs::path& folder, absl::string_view name,
                     absl::string_view reason) {
  return absl::InvalidArgumentError(
      absl::StrCat(folder.string(), "/", Excerpt(name), " ", reason));
}

// The names of what lies in `folder`, in no order, at most `max` of them.
absl::StatusOr<std::vector<std::string>> List(const fs::path& folder,
                                              size_t max) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (names.size() == max) {
      return absl::InvalidArgumentError(
          absl::StrCat(folder.string(), " has more than ", max, " entries"));
    }
    names.push_back(entry->path().filename().string());
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat(
        "cannot read the folder ", folder.string(), ": ", error.message()));
  }
  return names;
}

// Where a link leads, if that is a path without further links: the replay makes
// such links, which stand for a site's files. A link in the site itself could
// stand for any file of this machine.
absl::StatusOr<fs::path> Followed(const fs::path& path) {
  std::error_code error;
  const fs::path target = fs::read_symlink(path, error);
  if (error == std::errc::invalid_argument) {
    return path;  // It is no link.
  }
  if (error) {
    return absl::UnavailableError(error.message());
  }
  const fs::path canonical = fs::canonical(path, error);
  if (error) {
    return absl::UnavailableError(error.message());
  }
  if (target != canonical) {
    return absl::InvalidArgumentError("it is a link that leads to a link");
  }
  return target;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ListResponseFiles(
    const fs::path& folder) {
  // Beside the hosts' folders there is the index, and whatever a user keeps
  // there.
  absl::StatusOr<std::vector<std::string>> hosts = List(folder, 2 * kMaxHosts);
  if (!hosts.ok()) {
    return hosts.status();
  }
  std::vector<std::string> files;
  size_t folders = 0;
  for (const std::string& host : *hosts) {
    std::error_code error;
    if (!fs::is_directory(folder / host, error)) {
      continue;
    }
    if (++folders > kMaxHosts) {
      return absl::InvalidArgumentError(absl::StrCat(
          folder.string(), " has more than ", kMaxHosts, " hosts' folders"));
    }
    if (!absl::c_all_of(host, absl::ascii_isgraph)) {
      return ErrorIn(folder, host, "is no name of a host's folder");
    }
    absl::StatusOr<std::vector<std::string>> names =
        List(folder / host, kMaxExchanges);
    if (!names.ok()) {
      return names.status();
    }
    for (const std::string& name : *names) {
      if (!IsResponseName(name)) {
        return ErrorIn(folder / host, name, "is no name of a response file");
      }
      if (files.size() == kMaxExchanges) {
        return absl::InvalidArgumentError(
            absl::StrCat(folder.string(), " has more than ", kMaxExchanges,
                         " response files"));
      }
      files.push_back(absl::StrCat(host, "/", name));
    }
  }
  absl::c_sort(files, [](absl::string_view a, absl::string_view b) {
    return std::pair(OwnName(a), a) < std::pair(OwnName(b), b);
  });
  return files;
}

absl::StatusOr<absl::Span<char>> ReadResponseFile(const fs::path& path,
                                                  uint64_t max_bytes,
                                                  SharedMemory& memory) {
  const absl::StatusOr<fs::path> followed = Followed(path);
  if (!followed.ok()) {
    return followed.status();
  }
  // Without O_NONBLOCK a pipe would be waited for; a device might do anything.
  const int file = open(followed->c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK |
                                               O_NOCTTY | O_CLOEXEC);
  if (file < 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  const absl::Cleanup closing = [file] { close(file); };
  struct stat status;
  if (fstat(file, &status) != 0) {
    return absl::UnavailableError(std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError("it is no ordinary file");
  }
  if (static_cast<uint64_t>(status.st_size) > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has ", status.st_size, " bytes, more than the ",
                     max_bytes, " that it may have"));
  }
  char* const begin = memory.Allocate(status.st_size);
  if (begin == nullptr) {
    return absl::ResourceExhaustedError(std::strerror(errno));
  }
  const absl::Span<char> text(begin, status.st_size);
  for (size_t size = 0; size < text.size();) {
    const ssize_t bytes = read(file, text.data() + size, text.size() - size);
    if (bytes < 0 && errno == EINTR) {
      continue;
    }
    if (bytes <= 0) {
      return absl::UnavailableError(bytes < 0 ? std::strerror(errno)
                                              : "it became shorter");
    }
    size += bytes;
  }
  return text;
}

}  // namespace eyelevel
