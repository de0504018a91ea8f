//! The journal and what it leaves behind.
