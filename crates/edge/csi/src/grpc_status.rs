//! Classifies gRPC errors: does the volume exist, not exist, or is the outcome unknown?

use tonic::{Code, Status};

use bindery_provisioner_sdk::{Failure, FailureEffect};

/// The failure of CreateVolume. Another node may be tried only if the driver has topology and a
/// node was selected.
pub(crate) fn create_failure(status: &Status, other_node_possible: bool) -> Failure {
    let after = match status.code() {
        Code::Cancelled | Code::DeadlineExceeded | Code::Unavailable | Code::Aborted => FailureEffect::Unknown,
        Code::ResourceExhausted if other_node_possible => FailureEffect::Reschedule,
        Code::InvalidArgument => FailureEffect::Infeasible,
        Code::AlreadyExists => FailureEffect::NameTaken,
        Code::ResourceExhausted => FailureEffect::Absent,
        Code::Ok
        | Code::Unknown
        | Code::NotFound
        | Code::PermissionDenied
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => FailureEffect::Nothing,
    };
    Failure { error: message(status), effect: after }
}

/// The failure of DeleteVolume. The volume may be deleted or not; the call is repeated.
pub(crate) fn delete_failure(status: &Status) -> Failure {
    Failure { error: message(status), effect: FailureEffect::Unknown }
}

/// A status as gRPC for Go prints it, and users know it from events.
pub(crate) fn message(status: &Status) -> String {
    format!("rpc error: code = {} desc = {}", code_name(status.code()), status.message())
}

/// The name of a code in events and metrics.
pub fn code_name(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "Canceled",
        Code::Unknown => "Unknown",
        Code::InvalidArgument => "InvalidArgument",
        Code::DeadlineExceeded => "DeadlineExceeded",
        Code::NotFound => "NotFound",
        Code::AlreadyExists => "AlreadyExists",
        Code::PermissionDenied => "PermissionDenied",
        Code::ResourceExhausted => "ResourceExhausted",
        Code::FailedPrecondition => "FailedPrecondition",
        Code::Aborted => "Aborted",
        Code::OutOfRange => "OutOfRange",
        Code::Unimplemented => "Unimplemented",
        Code::Internal => "Internal",
        Code::Unavailable => "Unavailable",
        Code::DataLoss => "DataLoss",
        Code::Unauthenticated => "Unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_name_and_an_effect() {
        let table = [
            (Code::Cancelled, "Canceled", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::Unknown, "Unknown", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::InvalidArgument, "InvalidArgument", FailureEffect::Infeasible, FailureEffect::Infeasible),
            (Code::DeadlineExceeded, "DeadlineExceeded", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::NotFound, "NotFound", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::AlreadyExists, "AlreadyExists", FailureEffect::NameTaken, FailureEffect::NameTaken),
            (Code::PermissionDenied, "PermissionDenied", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::ResourceExhausted, "ResourceExhausted", FailureEffect::Absent, FailureEffect::Reschedule),
            (Code::FailedPrecondition, "FailedPrecondition", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Aborted, "Aborted", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::OutOfRange, "OutOfRange", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unimplemented, "Unimplemented", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Internal, "Internal", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unavailable, "Unavailable", FailureEffect::Unknown, FailureEffect::Unknown),
            (Code::DataLoss, "DataLoss", FailureEffect::Nothing, FailureEffect::Nothing),
            (Code::Unauthenticated, "Unauthenticated", FailureEffect::Nothing, FailureEffect::Nothing),
        ];
        for (code, word, here, elsewhere) in table {
            let status = Status::new(code, "no");
            let error = format!("rpc error: code = {word} desc = no");
            assert_eq!(create_failure(&status, false), Failure { error: error.clone(), effect: here });
            assert_eq!(create_failure(&status, true), Failure { error: error.clone(), effect: elsewhere });
            assert_eq!(delete_failure(&status), Failure { error, effect: FailureEffect::Unknown });
        }
    }
}
