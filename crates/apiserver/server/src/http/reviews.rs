//! Reviews: authentication and authorization. There is one user, the administrator, who may do
//! everything.

use serde_json::{Value, json};

use super::protobuf::{self, Content, Field};
use crate::api::Format;
use crate::host::keys::{ADMIN, MASTERS};
use crate::status::Status;

/// A resource that can only be created, and is not stored.
pub struct Review {
    /// Its group; its version is `v1`.
    pub group: &'static str,
    /// Such as `tokenreviews`.
    pub plural: &'static str,
    /// Such as `TokenReview`.
    pub kind: &'static str,
    /// Whether it is namespaced.
    pub namespaced: bool,
    spec: &'static [Field],
    answer: Answer,
}

/// Computes the status of a review from its spec and a check for the administrator's token.
type Answer = fn(&Value, &dyn Fn(&str) -> bool) -> Value;

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

const fn text(number: u64, name: &'static str) -> Field {
    Field { number, name, content: Content::Text }
}

const TOKEN: &[Field] = &[text(1, "token"), Field { number: 2, name: "audiences", content: Content::Texts }];

const ACCESS: &[Field] = &[
    Field {
        number: 1,
        name: "resourceAttributes",
        content: Content::Message(&[
            text(1, "namespace"),
            text(2, "verb"),
            text(3, "group"),
            text(4, "version"),
            text(5, "resource"),
            text(6, "subresource"),
            text(7, "name"),
        ]),
    },
    Field { number: 2, name: "nonResourceAttributes", content: Content::Message(&[text(1, "path"), text(2, "verb")]) },
    text(3, "user"),
    Field { number: 4, name: "groups", content: Content::Texts },
];

/// All reviews.
pub static REVIEWS: [Review; 6] = [
    Review {
        group: AUTHENTICATION,
        plural: "selfsubjectreviews",
        kind: "SelfSubjectReview",
        namespaced: false,
        spec: &[],
        answer: |_, _| json!({"userInfo": user()}),
    },
    Review {
        group: AUTHENTICATION,
        plural: "tokenreviews",
        kind: "TokenReview",
        namespaced: false,
        spec: TOKEN,
        answer: token,
    },
    Review {
        group: AUTHORIZATION,
        plural: "localsubjectaccessreviews",
        kind: "LocalSubjectAccessReview",
        namespaced: true,
        spec: ACCESS,
        answer: access,
    },
    Review {
        group: AUTHORIZATION,
        plural: "selfsubjectaccessreviews",
        kind: "SelfSubjectAccessReview",
        namespaced: false,
        spec: ACCESS,
        // Only the administrator can authenticate.
        answer: |_, _| json!({"allowed": true}),
    },
    Review {
        group: AUTHORIZATION,
        plural: "selfsubjectrulesreviews",
        kind: "SelfSubjectRulesReview",
        namespaced: false,
        spec: &[Field { number: 1, name: "namespace", content: Content::Text }],
        answer: |_, _| {
            json!({
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": false,
            })
        },
    },
    Review {
        group: AUTHORIZATION,
        plural: "subjectaccessreviews",
        kind: "SubjectAccessReview",
        namespaced: false,
        spec: ACCESS,
        answer: access,
    },
];

impl Review {
    /// The review at a path.
    pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Review> {
        REVIEWS.iter().find(|review| version == "v1" && review.group == group && review.plural == plural)
    }

    /// Decodes a review.
    pub fn read(&self, content_type: Option<&str>, sent: &[u8]) -> Result<Value, Status> {
        if content_type == Some(protobuf::MEDIA_TYPE) {
            let spec = protobuf::read(sent, &[Field { number: 2, name: "spec", content: Content::Message(self.spec) }]);
            return spec.ok_or_else(|| Status::bad_request("the request body is not a valid protobuf message"));
        }
        let reject = |error: &dyn std::fmt::Display| Status::bad_request(format!("cannot decode the review: {error}"));
        match super::accept::body_format(content_type)? {
            Format::Json => serde_json::from_slice(sent).map_err(|error| reject(&error)),
            Format::Yaml => {
                let json = bindery_fields::yaml_to_json(sent).map_err(|error| reject(&error))?;
                serde_json::from_slice(&json.json).map_err(|error| reject(&error))
            }
        }
    }

    /// The review with its status. `is_admin_token` checks for the administrator's token.
    pub fn answer(&self, mut review: Value, is_admin_token: &dyn Fn(&str) -> bool) -> Result<Value, Status> {
        let api_version = format!("{}/v1", self.group);
        let given = |field: &str| review.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        for (field, expected) in [("kind", self.kind), ("apiVersion", api_version.as_str())] {
            let given = given(field);
            if !given.is_empty() && given != expected {
                let message =
                    format!("the {field} in the data ({given}) does not match the expected {field} ({expected})");
                return Err(Status::bad_request(message));
            }
        }
        let status = (self.answer)(review.get("spec").unwrap_or(&Value::Null), is_admin_token);
        let review = review.as_object_mut().ok_or_else(|| Status::bad_request("a review must be an object"))?;
        review.insert("kind".to_owned(), json!(self.kind));
        review.insert("apiVersion".to_owned(), json!(api_version));
        review.entry("metadata").or_insert_with(|| json!({}));
        review.insert("status".to_owned(), status);
        Ok(Value::Object(std::mem::take(review)))
    }
}

fn user() -> Value {
    json!({"username": ADMIN, "groups": [MASTERS, "system:authenticated"]})
}

fn token(spec: &Value, is_admin_token: &dyn Fn(&str) -> bool) -> Value {
    if spec.get("token").and_then(Value::as_str).is_some_and(is_admin_token) {
        json!({"authenticated": true, "user": user(), "audiences": ["https://kubernetes.default.svc"]})
    } else {
        json!({"user": {}, "error": "invalid bearer token"})
    }
}

fn access(spec: &Value, _knows: &dyn Fn(&str) -> bool) -> Value {
    let groups = spec.get("groups").and_then(Value::as_array);
    let is_master = groups.is_some_and(|groups| groups.iter().any(|group| group == MASTERS));
    let is_admin = spec.get("user").and_then(Value::as_str) == Some(ADMIN);
    json!({"allowed": is_master || is_admin})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(plural: &str, group: &str, spec: &Value) -> Value {
        let review = Review::find(group, "v1", plural).expect("it is known");
        let answer = review.answer(json!({"spec": spec}), &|token| token == "right");
        answer.expect("it is answered")["status"].clone()
    }

    #[test]
    fn only_the_admin_token_authenticates() {
        let of = |token: &str| status("tokenreviews", AUTHENTICATION, &json!({"token": token}));
        assert_eq!(of("right")["authenticated"], true);
        assert_eq!(of("wrong"), json!({"user": {}, "error": "invalid bearer token"}));
    }

    #[test]
    fn only_the_administrator_is_authorized() {
        let may = |spec: &Value| status("subjectaccessreviews", AUTHORIZATION, spec)["allowed"].clone();
        assert_eq!(may(&json!({"user": ADMIN})), true);
        assert_eq!(may(&json!({"user": "x", "groups": ["system:masters"]})), true);
        assert_eq!(may(&json!({"user": "x", "groups": ["other"]})), false);
        assert_eq!(may(&Value::Null), false);
    }

    #[test]
    fn a_review_of_another_kind_is_rejected() {
        let review = Review::find(AUTHORIZATION, "v1", "subjectaccessreviews").expect("it is known");
        for sent in [r#"{"kind":"TokenReview"}"#, r#"{"apiVersion":"v1"}"#, "[]", "x"] {
            let answer = review.read(None, sent.as_bytes()).and_then(|sent| review.answer(sent, &|_| false));
            assert_eq!(answer.expect_err("it is rejected").http_code(), 400, "{sent}");
        }
    }
}
