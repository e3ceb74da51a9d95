//! Access control: a request needs the token, a host name of this machine, and one of our pages as
//! its origin.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cairn_vfs::{Rng, SystemRng};

use crate::error::{Error, Result};
use crate::output::to_hex;
use crate::web::{Hosts, POLICY, Refusal, check_origin};

/// The secret token of one start of the server, and its host names.
#[derive(Debug)]
pub struct Guard {
    token: String,
    cookie: String,
    hosts: Hosts,
}

impl Guard {
    /// Creates a token of 128 random bits. The cookie's name includes the port, because cookies are
    /// shared between ports.
    pub fn new(hosts: Hosts, port: u16) -> Result<Guard> {
        let mut rng =
            SystemRng::new().map_err(|error| Error::usage(format!("no random numbers: {error}")))?;
        let mut bytes = [0; 16];
        rng.fill(&mut bytes);
        Ok(Guard { token: to_hex(&bytes), cookie: format!("cairn-ui-{port}"), hosts })
    }

    /// Returns the path and query of the address that is printed.
    pub fn place(&self) -> String {
        format!("/?token={}", self.token)
    }

    fn is_token(&self, word: &str) -> bool {
        // Constant time, so that the duration does not reveal how much of the token was right.
        let (right, asked) = (self.token.as_bytes(), word.as_bytes());
        let differences = right.iter().zip(asked).fold(0, |sum, (a, b)| sum | (a ^ b));
        right.len() == asked.len() && std::hint::black_box(differences) == 0
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        let mut pairs =
            cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && self.is_token(value))
    }

    fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        value.and_then(|value| value.strip_prefix("Bearer ")).is_some_and(|word| self.is_token(word))
    }

    /// Returns true if the token is in the address, which is allowed only for opening the page.
    fn has_token(&self, request: &Request) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        request.uri().path() == "/"
            && request.method() == Method::GET
            && pairs.any(|(name, value)| name == "token" && self.is_token(value))
    }

    fn judge(&self, request: &Request) -> Result<Entry, Refusal> {
        let headers = request.headers();
        if !self.hosts.allows(headers) {
            let what = "this page is not served under that host name; --host adds one";
            return Err(Refusal::new(StatusCode::FORBIDDEN, what));
        }
        let entry = match () {
            () if self.has_cookie(headers) || self.has_bearer(headers) => Entry::Known,
            () if self.has_token(request) => Entry::First,
            () => {
                let what = "missing token: open the address that `cairn ui` printed";
                return Err(Refusal::new(StatusCode::UNAUTHORIZED, what));
            }
        };
        // Needed because browsers also send the cookie with requests of pages on other ports of
        // this machine.
        check_origin(request)?;
        Ok(entry)
    }
}

/// The way in which a request was authenticated.
enum Entry {
    Known,
    /// By the token in the address. The response then sets the cookie.
    First,
}

/// Passes on authorized requests, and adds security headers to every response.
pub async fn guard(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let (mut response, entry) = match guard.judge(&request) {
        Ok(entry) => (next.run(request).await, Some(entry)),
        Err(refused) => (refused.into_response(), None),
    };
    let headers = response.headers_mut();
    let mut fixed = |name, value| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    fixed(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    fixed(header::REFERRER_POLICY, "no-referrer");
    fixed(header::X_FRAME_OPTIONS, "DENY");
    fixed(header::CACHE_CONTROL, "no-store");
    fixed(header::CONTENT_SECURITY_POLICY, POLICY);
    let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", guard.cookie, guard.token);
    if let (Some(Entry::First), Ok(cookie)) = (entry, HeaderValue::from_str(&cookie)) {
        headers.insert(header::SET_COOKIE, cookie);
    }
    response
}
