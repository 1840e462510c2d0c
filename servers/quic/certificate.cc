#include "certificate.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "openssl/ssl.h"
#include "quiche/quic/core/crypto/certificate_view.h"
#include "quiche/quic/core/crypto/proof_source_x509.h"

namespace eyelevel {
namespace {

using ChainPointer =
    quiche::QuicheReferenceCountedPointer<quic::ProofSource::Chain>;

class ReplayProofSource : public quic::ProofSourceX509 {
 public:
  ReplayProofSource(ChainPointer chain, quic::CertificatePrivateKey key)
      : ProofSourceX509(std::move(chain), std::move(key)) {}

  using ProofSourceX509::valid;

  // As NGINX on the TCP side. The browser offers a post-quantum group first,
  // which OpenSSL 3.0 lacks and a BoringSSL of another version may accept.
  void OnNewSslCtx(SSL_CTX* context) override {
    static constexpr uint16_t kGroups[] = {SSL_GROUP_X25519};
    SSL_CTX_set1_group_ids(context, kGroups, std::size(kGroups));
  }
};

absl::Status CannotRead(absl::string_view what, const std::string& path) {
  return absl::UnavailableError(absl::StrCat("cannot read the ", what, " ",
                                             path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<quic::ProofSource>> LoadCertificate(
    const std::string& chain_path, const std::string& key_path) {
  std::ifstream chain_file(chain_path);
  if (!chain_file) {
    return CannotRead("certificate", chain_path);
  }
  std::ifstream key_file(key_path);
  if (!key_file) {
    return CannotRead("key", key_path);
  }

  const std::vector<std::string> certificates =
      quic::CertificateView::LoadPemFromStream(&chain_file);
  if (certificates.empty() || quic::CertificateView::ParseSingleCertificate(
                                  certificates[0]) == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no usable PEM certificate in ", chain_path));
  }
  const auto key = quic::CertificatePrivateKey::LoadPemFromStream(&key_file);
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no usable PEM private key in ", key_path));
  }

  auto source = std::make_unique<ReplayProofSource>(
      ChainPointer(new quic::ProofSource::Chain(certificates)),
      std::move(*key));
  if (!source->valid()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the key ", key_path,
                     " does not belong to the certificate ", chain_path));
  }
  return source;
}

}  // namespace eyelevel
