//! A small Kubernetes API server: a synchronous, deterministic store, and HTTP around it.
//!
//! This room does not know any controller, nor what a claim is bound to.
