//! The host names under which a page may be requested.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

/// The names that a request may have in `Host`. This prevents DNS rebinding: another site can point
/// its name at this machine, so that its pages pass for ours, but `Host` then holds that name. An
/// address cannot be redirected in this way.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    /// True if the server listens on all addresses, so that `Host` may hold any address.
    any_address: bool,
}

impl Hosts {
    /// Returns the names of a server that listens on `address`, with further `names`.
    pub fn of(address: IpAddr, names: &[String]) -> Hosts {
        let mut all: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        all.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        all.push(address.to_string());
        Hosts { names: all, any_address: address.is_unspecified() }
    }

    /// Returns true if the `Host` header names this server.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = name_of(host).to_ascii_lowercase();
        self.names.contains(&name) || (self.any_address && name.parse::<IpAddr>().is_ok())
    }
}

/// Strips the port, and the brackets of an IPv6 address.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(hosts: &Hosts, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        hosts.allows(&headers)
    }

    /// Goal: exactly this machine's names are allowed, with and without a port. Method: valid and
    /// invalid names, including tricks with ports, brackets and suffixes.
    #[test]
    fn unknown_host_names_are_refused() {
        let hosts = Hosts::of("127.0.0.1".parse().unwrap(), &["Lab.example".to_owned()]);
        for host in
            ["127.0.0.1", "127.0.0.1:80", "localhost:8088", "LOCALHOST", "[::1]:8088", "lab.EXAMPLE:1"]
        {
            assert!(allows(&hosts, host), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:8088",
            "",
            ":8088",
            "192.0.2.1",
        ] {
            assert!(!allows(&hosts, host), "{host}");
        }
        assert!(!hosts.allows(&HeaderMap::new()));
    }

    /// Goal: a server that listens on all addresses accepts any address, but only names that were
    /// given.
    #[test]
    fn listening_everywhere() {
        let hosts = Hosts::of("0.0.0.0".parse().unwrap(), &[]);
        assert!(allows(&hosts, "192.0.2.1:8088") && allows(&hosts, "[2001:db8::1]:8088"));
        assert!(!allows(&hosts, "evil.example"));
    }
}
