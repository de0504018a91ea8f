//! Which nodes can serve a pod's claims, and what to reserve there: the scheduler's half of delayed binding.
//!
//! ```text
//!  a pod ──prepare──▶ Prepared ──find(node)──▶ Found ──plan──▶ Plan ──next──▶ a write, waiting, done, or failed
//!          once         │            for each node │ score         until done
//!       or Refusal      └── or Fault                └── or obstacles
//! ```
//!
//! [`prepare`](prepare()) looks at the pod's claims once; [`Prepared::find`] is then asked for every node, and looks only at what
//! that node can reach; [`Shape::score`] compares the nodes that will do. For the one that is chosen a [`Plan`] names, step by
//! step, what is to be written. [`Placing::outlook`] asks a node the same for each claim by itself, for whoever wants to know all
//! reasons and not the first. [`zone`], [`restrictions`] and [`limits`] are the tests beside it that upstream makes in plugins
//! of their own; [`Placing`] makes all of them, in upstream's order.
//!
//! Everything here is a pure function of a [`View`]. This room does not know clocks, queues or clients, nor anything else that
//! decides where a pod runs: it knows volumes. It remembers nothing: what a restart loses is planned again.

mod find;
mod known;
pub mod limits;
mod migration;
mod outlook;
mod placing;
mod plan;
mod prepare;
mod provision;
mod reason;
pub mod restrictions;
pub mod rules;
mod score;
mod view;
pub mod zone;

pub use find::{Binding, Found, Provision, Unreached};
pub use known::other_users;
pub use outlook::{Lack, Outlook, Prospect};
pub use placing::Placing;
pub use plan::{Failure, Plan, Step};
pub use prepare::{Prepared, Refused, prepare};
pub use provision::Unmade;
pub use reason::{Fault, Obstacle, Refusal};
pub use score::{Point, Shape, ShapeError};
pub use view::{User, View};
