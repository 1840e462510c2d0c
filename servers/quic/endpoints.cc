#include "endpoints.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "excerpt.h"
#include "quiche/quic/platform/api/quic_ip_address.h"

namespace eyelevel {
namespace {

constexpr size_t kFields = 4;

absl::StatusOr<Endpoint> EndpointOf(absl::string_view line) {
  const std::vector<absl::string_view> fields = absl::StrSplit(line, '\t');
  if (fields.size() != kFields || fields[2].empty() || fields[3].empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "not ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>KEY: ", Excerpt(line)));
  }
  quic::QuicIpAddress ip;
  if (!ip.FromString(std::string(fields[0]))) {
    return absl::InvalidArgumentError(
        absl::StrCat("no IP address: ", Excerpt(fields[0])));
  }
  uint32_t port;
  if (!absl::SimpleAtoi(fields[1], &port) || port > UINT16_MAX) {
    return absl::InvalidArgumentError(
        absl::StrCat("no port: ", Excerpt(fields[1])));
  }
  return Endpoint{
      .address = quic::QuicSocketAddress(ip, static_cast<uint16_t>(port)),
      .certificate = std::string(fields[2]),
      .key = std::string(fields[3])};
}

}  // namespace

absl::StatusOr<std::vector<Endpoint>> LoadEndpoints(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::vector<Endpoint> endpoints;
  for (std::string line; std::getline(file, line);) {
    absl::StatusOr<Endpoint> endpoint = EndpointOf(line);
    if (!endpoint.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", endpoints.size() + 1, " of the endpoints ",
                       path, " is broken: ", endpoint.status().message()));
    }
    endpoints.push_back(*std::move(endpoint));
  }
  if (!file.eof()) {  // It could not be opened, or not be read, as a folder.
    return absl::UnavailableError(absl::StrCat(
        "cannot read the endpoints ", path, ": ", std::strerror(errno)));
  }
  if (endpoints.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("there is no endpoint in ", path));
  }
  return endpoints;
}

}  // namespace eyelevel
