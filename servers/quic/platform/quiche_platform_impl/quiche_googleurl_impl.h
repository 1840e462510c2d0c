// The part of Chromium's //url that quiche needs, and no more.
//
// quiche's own header of this name (in quiche/common/platform/default) includes
// //url, which pulls in half of //base. This one comes first on the include
// path: a server only asks for the canonical form of a host name, the one in
// the client's SNI. Names and signatures are //url's.

#ifndef EYELEVEL_SERVERS_QUIC_PLATFORM_QUICHE_GOOGLEURL_IMPL_H_
#define EYELEVEL_SERVERS_QUIC_PLATFORM_QUICHE_GOOGLEURL_IMPL_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace url {

// A part of a string; `len` is -1 when it is absent.
struct Component {
  Component() = default;
  Component(int b, int l) : begin(b), len(l) {}

  bool is_nonempty() const { return len > 0; }

  int begin = 0;
  int len = -1;
};

struct CanonHostInfo {
  enum Family { NEUTRAL, BROKEN, IPV4, IPV6 };

  bool IsIPAddress() const { return family == IPV4 || family == IPV6; }

  Family family = NEUTRAL;
  Component out_host;
};

class StdStringCanonOutput {
 public:
  explicit StdStringCanonOutput(std::string* output) : output_(output) {}

  void Append(std::string_view text) { output_->append(text); }
  size_t length() const { return output_->size(); }
  void Complete() {}

 private:
  std::string* output_;
};

// Appends the canonical form of the host `host` of `spec`: percent-decoded, in
// lower case, IP addresses in their usual notation. BROKEN, and nothing
// appended, for what can be no host. A name beyond ASCII is BROKEN too: on the
// wire it is punycode, so IDNA is left out.
void CanonicalizeHostVerbose(const char* spec, const Component& host,
                             StdStringCanonOutput* output,
                             CanonHostInfo* host_info);

}  // namespace url

#endif  // EYELEVEL_SERVERS_QUIC_PLATFORM_QUICHE_GOOGLEURL_IMPL_H_
