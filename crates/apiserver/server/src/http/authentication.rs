//! Who sends a request: the administrator, by certificate or token. Requests in the name of others
//! are rejected, rather than executed with more rights than the client asked for.

use std::collections::BTreeMap;

use http::header::{AUTHORIZATION, HeaderMap};

use super::query::percent_decoded;
use super::shared::Shared;
use crate::status::{Details, Status};

const PREFIX: &str = "impersonate-";
const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Accepts the administrator only. `trusted` says whether the client presented one of our
/// certificates.
pub fn authenticate(shared: &Shared, trusted: bool, headers: &HeaderMap) -> Result<(), Status> {
    if !trusted && !has_token(shared, headers) {
        return Err(Status::failure(401, "Unauthorized", "Unauthorized"));
    }
    reject_impersonation(headers)
}

fn has_token(shared: &Shared, headers: &HeaderMap) -> bool {
    let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()?.split_once(' '));
    shown.is_some_and(|(kind, token)| kind.eq_ignore_ascii_case("Bearer") && shared.is_admin_token(token.trim()))
}

/// Rejects every request with a header that starts with `Impersonate-`, whatever its value.
fn reject_impersonation(headers: &HeaderMap) -> Result<(), Status> {
    if !headers.keys().any(|name| name.as_str().starts_with(PREFIX)) {
        return Ok(());
    }
    let user = headers.get(USER).map(|user| String::from_utf8_lossy(user.as_bytes())).unwrap_or_default();
    if user.is_empty() {
        return without_user(headers);
    }
    let message = format!("users {user:?} is forbidden: this server does not support impersonation");
    let details = Details { name: user.into_owned(), kind: "users".to_owned(), ..Details::default() };
    Err(Status::failure(403, "Forbidden", message).with(details))
}

/// Groups, a UID or extra fields without a user are a client's error, with upstream's message.
fn without_user(headers: &HeaderMap) -> Result<(), Status> {
    let values = |name: &str| {
        let values = headers.get_all(name).iter();
        values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect::<Vec<_>>()
    };
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in headers.keys().map(http::HeaderName::as_str) {
        if let Some(key) = name.strip_prefix(EXTRA) {
            extra.entry(percent_decoded(key).into_owned()).or_default().extend(values(name));
        }
    }
    let extra: Vec<String> = extra.iter().map(|(key, values)| format!("{key:?}:{}", go_slice(values))).collect();
    let extra = if extra.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", extra.join(", ")) };
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:{}, Extra:map[string][]string{extra}}} without \
         impersonating a user name",
        values(UID).first().cloned().unwrap_or_default(),
        go_slice(&values(GROUP)),
    )))
}

/// A list of strings as Go's `%#v` formats it.
fn go_slice(values: &[String]) -> String {
    if values.is_empty() {
        return "[]string(nil)".to_owned();
    }
    let quoted: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
    format!("[]string{{{}}}", quoted.join(", "))
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn code(pairs: &[(&'static str, &'static [u8])]) -> Option<u16> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let value = HeaderValue::from_bytes(value).expect("a header value");
            headers.append(HeaderName::from_static(name), value);
        }
        reject_impersonation(&headers).err().map(|status| status.http_code())
    }

    #[test]
    fn no_impersonation_header_is_ignored() {
        assert_eq!(code(&[("accept", b"*/*")]), None);
        for user in [&b"jane"[..], "jürgen".as_bytes(), b"\xff\xfe"] {
            assert_eq!(code(&[(USER, user)]), Some(403));
            assert_eq!(code(&[(USER, user), (GROUP, b"system:masters")]), Some(403));
        }
        for name in [USER, GROUP, UID, "impersonate-extra-scopes", "impersonate-anything"] {
            assert_eq!(code(&[(name, b"")]), Some(400), "{name}");
            assert_eq!(code(&[(name, "ü".as_bytes())]), Some(if name == USER { 403 } else { 400 }), "{name}");
        }
        assert_eq!(code(&[(USER, b""), (GROUP, b"system:masters")]), Some(400));
    }
}
