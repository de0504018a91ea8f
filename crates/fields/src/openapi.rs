//! OpenAPI documents of the kinds that are served, from the same table as everything else.

use serde_json::Value;

/// The document of a group version: what `/openapi/v3/api/v1` or `/openapi/v3/apis/<group>/<version>` answers.
pub fn v3(_group: &str, _version: &str) -> Option<Value> {
    todo!()
}

/// The index: what `/openapi/v3` answers, with a hash in each URL.
pub fn index() -> Value {
    todo!()
}

/// The one document of `/openapi/v2`.
pub fn v2() -> Value {
    todo!()
}
