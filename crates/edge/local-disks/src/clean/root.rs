//! Resets the root directory of a file system, which stays when its content is removed: extended
//! attributes and access control lists of the last user, and owner, group and mode.

use std::fs::{File, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{PermissionsExt, fchown};

use rustix::fs::{flistxattr, fremovexattr};
use rustix::io::Errno;

use crate::discover::RootDirectory;
use crate::disk::shown;

/// The kernel's limit for all names of extended attributes of a file.
const NAMES_BYTES_MAX: usize = 64 << 10;

/// Attributes that belong to the node, not to the user of a volume: labels of Linux security
/// modules, and properties of btrfs.
const KEPT: [&[u8]; 5] = [b"security.selinux", b"security.SMACK64", b"security.ima", b"security.evm", b"btrfs."];

/// Removes the extended attributes of an open directory, and restores owner, group and mode if they
/// are known.
pub fn reset(directory: &OwnedFd, recorded: Option<RootDirectory>) -> Result<(), String> {
    for name in removable(directory)? {
        match fremovexattr(directory, name.as_slice()) {
            // Removing one access control list may remove the other.
            Ok(()) | Err(Errno::NODATA) => {}
            Err(error) => return Err(format!("cannot remove the attribute {}: {error}", shown(&name))),
        }
    }
    if let Some(left) = removable(directory)?.first() {
        return Err(format!("the attribute {} was set again; another process uses the disk", shown(left)));
    }
    let Some(RootDirectory { owner, group, mode }) = recorded else { return Ok(()) };
    let restore = || {
        fchown(directory, Some(owner), Some(group))?;
        // After the owner, since changing that clears bits of the mode.
        File::from(directory.try_clone()?).set_permissions(Permissions::from_mode(mode))
    };
    restore().map_err(|error| format!("cannot restore the owner and mode of the root directory: {error}"))
}

/// The names of the attributes to remove.
fn removable(directory: &OwnedFd) -> Result<Vec<Vec<u8>>, String> {
    let mut names = vec![0; NAMES_BYTES_MAX];
    let length = match flistxattr(directory, names.as_mut_slice()) {
        Ok(length) => length,
        // The file system has no attributes.
        Err(Errno::OPNOTSUPP) => 0,
        Err(error) => return Err(format!("cannot list the attributes of the root directory: {error}")),
    };
    let is_removable = |name: &&[u8]| !name.is_empty() && !KEPT.iter().any(|kept| name.starts_with(kept));
    Ok(names[..length].split(|byte| *byte == 0).filter(is_removable).map(<[u8]>::to_vec).collect())
}
