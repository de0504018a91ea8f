//! The same requests to two API servers, and what differs in their answers.
//!
//! This room does not know how either server works.
