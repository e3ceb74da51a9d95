//! Checks that a request comes from one of our pages, as far as a browser tells.

use axum::extract::Request;
use axum::http::{Method, StatusCode};

use super::Refusal;

/// The header that every request with side effects must have. A form cannot send it, and a script
/// of another site only after a preflight request.
const PAGE_HEADER: &str = "x-cairn";

/// The header in which browsers send the site of the requesting page. Other programs do not send
/// it.
const SITE: &str = "sec-fetch-site";

/// Accepts requests of our pages and of programs other than browsers.
///
/// Errors: the request may have side effects but lacks the header of our pages; or it is for the
/// API, and the browser says that a page of another site sent it, for which an image's address
/// would be enough. Another port of this machine is another site too. Pages themselves may be
/// linked from anywhere.
pub fn check_origin(request: &Request) -> Result<(), Refusal> {
    let only_reads = [Method::GET, Method::HEAD].contains(request.method());
    if !only_reads && !request.headers().contains_key(PAGE_HEADER) {
        let what = format!("{} needs the header {PAGE_HEADER}", request.method());
        return Err(Refusal::new(StatusCode::FORBIDDEN, what));
    }
    // Match at any depth: the simulator's page may be served below another path.
    let is_work = request.uri().path().split('/').any(|part| part == "api");
    let mut sites = request.headers().get_all(SITE).iter();
    if is_work && !sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return Err(Refusal::new(StatusCode::FORBIDDEN, "cross-site request refused"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn passes(method: &str, path: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check_origin(&request.body(Body::empty()).unwrap()).is_ok()
    }

    /// Goal: requests of our pages and of programs are accepted; pages of other sites cannot
    /// trigger work, but may link to ours.
    /// Method: requests as browsers and programs send them, for each kind of path.
    #[test]
    fn only_own_pages_may_change_anything() {
        let own_header = (PAGE_HEADER, "page");
        for (method, path, headers) in [
            ("GET", "/", &[(SITE, "cross-site")][..]),
            ("GET", "/report?run=/api/", &[(SITE, "cross-site")]),
            ("GET", "/api/stream?config=%7B%7D", &[]),
            ("GET", "/api/stream", &[(SITE, "same-origin")]),
            ("GET", "/sim/api/stream", &[(SITE, "none")]),
            ("POST", "/api/sweep", &[own_header]),
            ("POST", "/api/sweep", &[own_header, (SITE, "same-origin")]),
        ] {
            assert!(passes(method, path, headers), "{method} {path} {headers:?}");
        }
        for (method, path, headers) in [
            ("POST", "/api/sweep", &[(SITE, "same-origin")][..]),
            ("POST", "/api/sweep", &[]),
            ("POST", "/api/sweep", &[own_header, (SITE, "cross-site")]),
            ("PUT", "/", &[]),
            ("OPTIONS", "/api/sweep", &[("access-control-request-headers", PAGE_HEADER)]),
            ("GET", "/api/stream", &[(SITE, "cross-site")]),
            ("GET", "/api/stream", &[(SITE, "same-site")]),
            ("GET", "/api/stream", &[(SITE, "")]),
            ("HEAD", "/sim/api/stream", &[(SITE, "cross-site")]),
            ("GET", "/api/stream", &[(SITE, "same-origin"), (SITE, "cross-site")]),
        ] {
            assert!(!passes(method, path, headers), "{method} {path} {headers:?}");
        }
    }
}
