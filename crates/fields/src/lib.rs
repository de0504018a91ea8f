//! The structure of Kubernetes objects: schemas, strict decoding, patches, field ownership.
//!
//! This room does not know any store, any rule of a kind, nor HTTP.
