//! Whether a request comes from a page of ours, as far as a browser says.

use axum::extract::Request;
use axum::http::{Method, StatusCode};

use super::Refused;

/// What requests that do more than read have to have. No form can send it, and no script of another
/// site without being asked about first.
const OURS: &str = "x-cairn";

/// Where browsers say of what site the page is that asks. Programs other than browsers do not send
/// it.
const SITE: &str = "sec-fetch-site";

/// Lets requests of pages of ours through, and those of programs.
///
/// Errors: it does more than read and has not the header of our pages; or it asks the server to
/// work, and a browser says that a page of another site makes it: an address in an image of that
/// page would be enough. Another port of this machine is another site too. Pages themselves may be
/// led to from anywhere.
pub fn expect_ours(request: &Request) -> Result<(), Refused> {
    let only_reads = [Method::GET, Method::HEAD].contains(request.method());
    if !only_reads && !request.headers().contains_key(OURS) {
        let what = format!("{} needs the header {OURS}", request.method());
        return Err(Refused::new(StatusCode::FORBIDDEN, what));
    }
    // The simulator's page may be below a path of another.
    let is_work = request.uri().path().split('/').any(|part| part == "api");
    let mut sites = request.headers().get_all(SITE).iter();
    if is_work && !sites.all(|site| matches!(site.as_bytes(), b"same-origin" | b"none")) {
        return Err(Refused::new(StatusCode::FORBIDDEN, "the request comes from a page of another site"));
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
        expect_ours(&request.body(Body::empty()).unwrap()).is_ok()
    }

    /// Goal: our pages and programs pass; pages of other sites have nothing done, and can still
    /// lead here. Method: requests as browsers and programs make them, to each kind of path.
    #[test]
    fn only_pages_of_ours_have_work_done() {
        let ours = (OURS, "page");
        for (method, path, headers) in [
            ("GET", "/", &[(SITE, "cross-site")][..]),
            ("GET", "/report?run=/api/", &[(SITE, "cross-site")]),
            ("GET", "/api/stream?config=%7B%7D", &[]),
            ("GET", "/api/stream", &[(SITE, "same-origin")]),
            ("GET", "/sim/api/stream", &[(SITE, "none")]),
            ("POST", "/api/sweep", &[ours]),
            ("POST", "/api/sweep", &[ours, (SITE, "same-origin")]),
        ] {
            assert!(passes(method, path, headers), "{method} {path} {headers:?}");
        }
        for (method, path, headers) in [
            ("POST", "/api/sweep", &[(SITE, "same-origin")][..]),
            ("POST", "/api/sweep", &[]),
            ("POST", "/api/sweep", &[ours, (SITE, "cross-site")]),
            ("PUT", "/", &[]),
            ("OPTIONS", "/api/sweep", &[("access-control-request-headers", OURS)]),
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
