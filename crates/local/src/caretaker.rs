//! What runs once in a cluster: sees to the claims and volumes of nodes that are gone.
