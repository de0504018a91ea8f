//! What may go with a node that is gone. Pure.
