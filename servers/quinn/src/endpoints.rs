//! The addresses and certificates with which quinn_server serves.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::responses::excerpt;

#[derive(Debug)]
pub struct Endpoint {
    pub address: SocketAddr,
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// Reads a file with one endpoint per line: ADDRESS, PORT, CERTIFICATE and KEY, separated by tabs. There is at least
/// one.
pub fn load(path: &Path) -> Result<Vec<Endpoint>> {
    let content = fs::read(path).with_context(|| format!("cannot read the endpoints {}", path.display()))?;
    let text = String::from_utf8_lossy(&content);
    let mut endpoints = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let broken = || format!("line {} of the endpoints {} is broken", number + 1, path.display());
        endpoints.push(endpoint_of(line).with_context(broken)?);
    }
    ensure!(!endpoints.is_empty(), "there is no endpoint in {}", path.display());
    Ok(endpoints)
}

fn endpoint_of(line: &str) -> Result<Endpoint> {
    let fields: Vec<_> = line.split('\t').collect();
    let [ip, port, certificate, key] = fields[..] else {
        bail!("not ADDRESS<TAB>PORT<TAB>CERTIFICATE<TAB>KEY: {}", excerpt(line.as_bytes()));
    };
    let ip: IpAddr = ip.parse().with_context(|| format!("no IP address: {}", excerpt(ip.as_bytes())))?;
    let port: u16 = port.parse().with_context(|| format!("no port: {}", excerpt(port.as_bytes())))?;
    ensure!(
        !certificate.is_empty() && !key.is_empty(),
        "no certificate or key: {}",
        excerpt(line.as_bytes())
    );
    Ok(Endpoint { address: SocketAddr::new(ip, port), certificate: certificate.into(), key: key.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_endpoint_is_one_line_that_says_where() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("endpoints.tsv");
        for (content, reason) in [
            ("", "there is no endpoint in"),
            ("127.0.0.1\t443\t/c\n", "line 1 of the endpoints"),
            ("127.0.0.1\t443\t/c\t/k\nlocalhost\t443\t/c\t/k\n", "no IP address: localhost"),
            ("127.0.0.1\t65536\t/c\t/k\n", "no port: 65536"),
            ("127.0.0.1\t443\t\t/k\n", "no certificate or key"),
        ] {
            fs::write(&file, content).unwrap();
            let error = format!("{:#}", load(&file).unwrap_err());
            assert!(error.contains(reason) && !error.contains('\n'), "{error}");
        }
        fs::write(&file, "127.0.0.1\t443\t/c\t/k\n").unwrap();
        assert_eq!(load(&file).unwrap()[0].address, "127.0.0.1:443".parse().unwrap());
    }
}
