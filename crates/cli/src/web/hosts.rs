//! The names by which a page may be asked for.

use std::net::IpAddr;

use axum::http::{HeaderMap, header};

/// Names that requests may have in `Host`. A page of another site could have its name point at this
/// machine, and would then pass for a page of ours: but its name stands there, and nobody can make
/// an address point elsewhere.
#[derive(Debug, Clone)]
pub struct Hosts {
    names: Vec<String>,
    /// It listens on all addresses, so any may stand there.
    any_address: bool,
}

impl Hosts {
    /// Those of a server that listens on `address`, and further `names`.
    pub fn of(address: IpAddr, names: &[String]) -> Hosts {
        let mut all: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        all.extend(["localhost", "127.0.0.1", "::1"].map(str::to_owned));
        all.push(address.to_string());
        Hosts { names: all, any_address: address.is_unspecified() }
    }

    /// Whether a request with these headers is one for us.
    pub fn allows(&self, headers: &HeaderMap) -> bool {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = name_of(host).to_ascii_lowercase();
        self.names.contains(&name) || (self.any_address && name.parse::<IpAddr>().is_ok())
    }
}

/// The name without the port, and without the brackets of an address of version 6.
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

    /// Goal: this machine's names pass, with and without port, and no others. Method: both, tricks
    /// with ports, brackets and endings among them.
    #[test]
    fn only_known_names_pass() {
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

    /// Goal: who listens everywhere is asked by any address, and still by no name that was not
    /// given.
    #[test]
    fn listening_everywhere() {
        let hosts = Hosts::of("0.0.0.0".parse().unwrap(), &[]);
        assert!(allows(&hosts, "192.0.2.1:8088") && allows(&hosts, "[2001:db8::1]:8088"));
        assert!(!allows(&hosts, "evil.example"));
    }
}
