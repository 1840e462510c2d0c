// The server's certificate chain and key, and what its TLS handshake may use.

#ifndef EYELEVEL_SERVERS_QUIC_CERTIFICATE_H_
#define EYELEVEL_SERVERS_QUIC_CERTIFICATE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "quiche/quic/core/crypto/proof_source.h"

namespace eyelevel {

// Reads a chain (leaf first) and the leaf's key, both PEM.
absl::StatusOr<std::unique_ptr<quic::ProofSource>> LoadCertificate(
    const std::string& chain_path, const std::string& key_path);

}  // namespace eyelevel

#endif  // EYELEVEL_SERVERS_QUIC_CERTIFICATE_H_
