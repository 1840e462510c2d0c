#include "quiche_platform_impl/quiche_googleurl_impl.h"

#include <arpa/inet.h>

#include <optional>
#include <string>
#include <string_view>

namespace url {
namespace {

// The code points the URL standard forbids in a domain; those above ASCII would
// need IDNA.
bool IsForbidden(unsigned char c) {
  return c <= ' ' || c >= 0x7f ||
         std::string_view("#%/:<>?@[\\]^|").find(c) != std::string_view::npos;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  if (c >= 'a' && c <= 'f') {
    return c - 'a' + 10;
  }
  if (c >= 'A' && c <= 'F') {
    return c - 'A' + 10;
  }
  return -1;
}

// Percent-decoded and in lower case; nothing if a forbidden character is left.
std::optional<std::string> CanonicalName(std::string_view host) {
  std::string name;
  for (size_t i = 0; i < host.size(); ++i) {
    char c = host[i];
    if (c == '%' && i + 2 < host.size() && HexDigit(host[i + 1]) >= 0 &&
        HexDigit(host[i + 2]) >= 0) {
      c = static_cast<char>(HexDigit(host[i + 1]) * 16 + HexDigit(host[i + 2]));
      i += 2;
    }
    if (IsForbidden(static_cast<unsigned char>(c))) {
      return std::nullopt;
    }
    name.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return name;
}

// The URL standard takes a host for an IPv4 address when its last label is a
// number.
bool EndsInNumber(std::string_view name) {
  if (name.ends_with('.')) {
    name.remove_suffix(1);
  }
  const std::string_view last = name.substr(name.rfind('.') + 1);
  if (last.starts_with("0x")) {
    return last.find_first_not_of("0123456789abcdef", 2) ==
           std::string_view::npos;
  }
  return !last.empty() &&
         last.find_first_not_of("0123456789") == std::string_view::npos;
}

CanonHostInfo::Family Canonicalize(std::string_view host,
                                   std::string& canonical) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    in6_addr address;
    char text[INET6_ADDRSTRLEN];
    if (inet_pton(AF_INET6,
                  std::string(host.substr(1, host.size() - 2)).c_str(),
                  &address) != 1) {
      return CanonHostInfo::BROKEN;
    }
    canonical = std::string("[") +
                inet_ntop(AF_INET6, &address, text, sizeof text) + "]";
    return CanonHostInfo::IPV6;
  }
  std::optional<std::string> name = CanonicalName(host);
  if (!name.has_value() || name->empty()) {
    return CanonHostInfo::BROKEN;
  }
  canonical = *name;
  if (!EndsInNumber(canonical)) {
    return CanonHostInfo::NEUTRAL;
  }
  if (canonical.ends_with('.')) {
    canonical.pop_back();
  }
  in_addr address;
  char text[INET_ADDRSTRLEN];
  if (inet_aton(canonical.c_str(), &address) == 0) {
    return CanonHostInfo::BROKEN;
  }
  canonical = inet_ntop(AF_INET, &address, text, sizeof text);
  return CanonHostInfo::IPV4;
}

}  // namespace

void CanonicalizeHostVerbose(const char* spec, const Component& host,
                             StdStringCanonOutput* output,
                             CanonHostInfo* host_info) {
  std::string canonical;
  host_info->family = Canonicalize(
      std::string_view(spec + host.begin, host.is_nonempty() ? host.len : 0),
      canonical);
  if (host_info->family == CanonHostInfo::BROKEN) {
    canonical.clear();
  }
  host_info->out_host = Component(static_cast<int>(output->length()),
                                  static_cast<int>(canonical.size()));
  output->Append(canonical);
}

}  // namespace url
