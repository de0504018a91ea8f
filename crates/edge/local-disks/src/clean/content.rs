//! Removes everything in a directory through file descriptors. Never follows a symbolic link, never
//! enters another mount, and keeps the directory itself.
//!
//! Every step uses one name in one open directory. If an attacker swaps an entry between two steps,
//! a link is removed as a link, and a directory is entered only if it is one at that moment and on
//! the same mount. So nothing outside can be reached. Directories may be nested arbitrarily deep:
//! only some are open at a time, and their parents are opened again from the root when needed.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, unlinkat};
use rustix::io::Errno;

use crate::disk::{Mount, open_directory, shown};

/// The maximum number of open directories.
const OPEN_MAX: usize = 128;

/// How often a directory is listed again because entries appeared in the meantime.
const PASSES_MAX: u32 = 32;

/// How often to retry an entry that keeps changing between file and directory.
const TRIES_MAX: u32 = 64;

/// The maximum number of problems to report.
const PROBLEMS_MAX: usize = 5;

/// Removes everything in an open directory. Continues after failures, and reports them at the end.
pub fn remove(root: &OwnedFd) -> Result<(), String> {
    remove_with_hook(root, &mut || {})
}

/// The same, with a hook before every step.
fn remove_with_hook(root: &OwnedFd, before_step: &mut dyn FnMut()) -> Result<(), String> {
    let whole = |error: std::io::Error| error.to_string();
    let mut walk = Walk {
        root: root.as_fd(),
        mount: Mount::of(root).map_err(whole)?,
        levels: vec![Level::new(CString::default(), Dir::read_from(root).map_err(|error| error.to_string())?)],
        problems: Vec::new(),
        problem_count: 0,
        before_step,
    };
    while !walk.levels.is_empty() {
        walk.step();
    }
    if walk.problem_count == 0 {
        return Ok(());
    }
    let more = walk.problem_count.saturating_sub(walk.problems.len());
    let and_more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Err(format!("cannot remove everything: {}{and_more}", walk.problems.join("; ")))
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    mount: Mount,
    /// The directories from the root to the current one. Contains at least the root until the end.
    levels: Vec<Level>,
    problems: Vec<String>,
    problem_count: usize,
    /// Called before every step; for tests.
    before_step: &'a mut dyn FnMut(),
}

struct Level {
    /// The name in its parent.
    name: CString,
    /// Closed if too many below it are open.
    dir: Option<Dir>,
    /// Entries that could not be removed.
    stuck: BTreeSet<CString>,
    /// Whether this pass has removed anything.
    changed: bool,
    passes: u32,
}

impl Level {
    fn new(name: CString, dir: Dir) -> Level {
        Level { name, dir: Some(dir), stuck: BTreeSet::new(), changed: false, passes: 0 }
    }
}

/// The result of removing an entry.
enum Removal {
    Removed,
    /// A directory that is not empty, now open.
    Entered(Dir),
    Stuck(String),
}

impl Walk<'_> {
    /// Handles the next entry of the deepest directory, or leaves the directory.
    fn step(&mut self) {
        if let Err(problem) = self.open_deepest() {
            return self.give_up(&problem);
        }
        let mount = self.mount;
        let Some(Level { dir: Some(dir), stuck, changed, .. }) = self.levels.last_mut() else { return };
        match dir.read() {
            None => self.leave(),
            Some(Err(error)) => self.give_up(&error.to_string()),
            Some(Ok(entry)) => {
                let name = entry.file_name();
                if name == c"." || name == c".." || stuck.contains(name) {
                    return;
                }
                let removal = match dir.fd() {
                    Ok(fd) => remove_one(fd, name, mount, self.before_step),
                    Err(error) => Removal::Stuck(error.to_string()),
                };
                match removal {
                    Removal::Removed => *changed = true,
                    Removal::Entered(dir) => self.enter(name.to_owned(), dir),
                    Removal::Stuck(problem) => {
                        stuck.insert(name.to_owned());
                        self.report(Some(name), &problem);
                    }
                }
            }
        }
    }

    fn enter(&mut self, name: CString, dir: Dir) {
        self.levels.push(Level::new(name, dir));
        // The root stays open anyway. The others are reopened by name.
        if let Some(above) = self.levels.len().checked_sub(OPEN_MAX).filter(|above| *above > 0) {
            self.levels[above].dir = None;
        }
    }

    /// Ends a pass over the deepest directory.
    fn leave(&mut self) {
        let Some(mut level) = self.levels.pop() else { return };
        level.passes += 1;
        let is_over = level.passes >= PASSES_MAX;
        let Some(above) = self.levels.last_mut() else {
            // List the root again until a pass finds nothing to do.
            if level.changed && !is_over {
                self.again(level);
            } else if level.changed {
                self.report(None, "new entries keep appearing");
            }
            return;
        };
        above.changed = true;
        if let Err(problem) = self.open_deepest() {
            return self.give_up(&problem);
        }
        let Some(Level { dir: Some(dir), stuck, .. }) = self.levels.last_mut() else { return };
        (self.before_step)();
        let removed = dir.fd().and_then(|fd| unlinkat(fd, level.name.as_c_str(), AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            // The stuck entries were reported already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !level.stuck.is_empty() => {
                stuck.insert(level.name);
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) if !is_over => self.again(level),
            // No longer a directory: the next pass over the parent handles it.
            Err(Errno::NOTDIR) => {}
            Err(error) => {
                stuck.insert(level.name.clone());
                self.report(Some(&level.name), &describe(error));
            }
        }
    }

    fn again(&mut self, mut level: Level) {
        level.changed = false;
        if let Some(dir) = &mut level.dir {
            dir.rewind();
        }
        self.levels.push(level);
    }

    /// Gives up on the deepest directory: it and its parents stay.
    fn give_up(&mut self, problem: &str) {
        self.report(None, problem);
        if let Some(level) = self.levels.pop()
            && let Some(above) = self.levels.last_mut()
        {
            above.stuck.insert(level.name);
        }
    }

    /// Reopens the deepest directory from the root if it was closed.
    fn open_deepest(&mut self) -> Result<(), String> {
        if self.levels.last().is_none_or(|level| level.dir.is_some()) {
            return Ok(());
        }
        let mut open: Option<OwnedFd> = None;
        let first_kept = self.levels.len().saturating_sub(OPEN_MAX / 2);
        for level in 1..self.levels.len() {
            let parent = open.as_ref().map_or(self.root, |fd| fd.as_fd());
            (self.before_step)();
            let next = enter(parent, &self.levels[level].name, self.mount)?;
            if level >= first_kept {
                self.levels[level].dir = Some(Dir::read_from(&next).map_err(|error| error.to_string())?);
            }
            open = Some(next);
        }
        Ok(())
    }

    fn report(&mut self, name: Option<&CStr>, problem: &str) {
        self.problem_count += 1;
        if self.problems.len() == PROBLEMS_MAX {
            return;
        }
        const PARTS_MAX: usize = 8;
        let parts: Vec<String> = self.levels.iter().skip(1).map(|level| shown(level.name.to_bytes())).collect();
        let parts = parts.into_iter().chain(name.map(|name| shown(name.to_bytes())));
        let mut parts: Vec<String> = parts.collect();
        if parts.len() > PARTS_MAX {
            parts.splice(PARTS_MAX / 2..parts.len() - PARTS_MAX / 2, ["…".to_owned()]);
        }
        self.problems.push(format!("{:?}: {problem}", parts.join("/")));
    }
}

/// Removes one entry of an open directory, or opens it if it is a directory that is not empty.
fn remove_one(parent: BorrowedFd<'_>, name: &CStr, mount: Mount, before_step: &mut dyn FnMut()) -> Removal {
    for _ in 0..TRIES_MAX {
        before_step();
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Removal::Removed,
            Err(Errno::ISDIR) => {}
            Err(error) => return Removal::Stuck(describe(error)),
        }
        before_step();
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Removal::Removed,
            Err(Errno::NOTDIR) => continue,
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Removal::Stuck(describe(error)),
        }
        before_step();
        match open_directory(parent, name) {
            Ok(child) => {
                return match entered(child, mount) {
                    Ok(dir) => Removal::Entered(dir),
                    Err(problem) => Removal::Stuck(problem),
                };
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => return Removal::Removed,
                // It was a directory a moment ago.
                Some(Errno::NOTDIR | Errno::LOOP) => continue,
                Some(_) | None => return Removal::Stuck(error.to_string()),
            },
        }
    }
    Removal::Stuck("it keeps changing between file and directory".into())
}

fn entered(child: OwnedFd, mount: Mount) -> Result<Dir, String> {
    check_mount(&child, mount)?;
    Dir::new(child).map_err(|error| error.to_string())
}

fn enter(parent: BorrowedFd<'_>, name: &CStr, mount: Mount) -> Result<OwnedFd, String> {
    let child = open_directory(parent, name).map_err(|error| error.to_string())?;
    check_mount(&child, mount)?;
    Ok(child)
}

fn check_mount(child: &OwnedFd, mount: Mount) -> Result<(), String> {
    match Mount::of(child) {
        Ok(other) if other == mount => Ok(()),
        Ok(_) => Err("another file system is mounted there".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn describe(error: Errno) -> String {
    match error {
        Errno::BUSY => "something is mounted there, or it is in use".into(),
        Errno::PERM => "not permitted; it may be immutable".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use rustix::fs::{CWD, RenameFlags, renameat_with};

    use super::*;

    /// A volume with nested directories, deep enough that some are reopened; files outside of it;
    /// and a link to these.
    fn prepare(root: &Path, depth: usize) {
        let deep: std::path::PathBuf = (0..depth).map(|_| "d").collect();
        fs::create_dir_all(root.join("volume/trap").join(deep)).expect("created");
        fs::write(root.join("volume/trap/file"), "").expect("written");
        fs::create_dir_all(root.join("outside/d/d")).expect("created");
        for name in ["file", "d/file", "d/d/file"] {
            fs::write(root.join("outside").join(name), "").expect("written");
        }
        symlink(root.join("outside"), root.join("link")).expect("linked");
    }

    /// Swaps a directory of the volume for the link at one step, for each step in turn, and
    /// optionally back at the next step.
    fn swap_at_every_step(depth: usize, stride: usize, swaps_back: bool) -> usize {
        let root = std::env::temp_dir().join(format!("bindery-steps-{}-{depth}-{swaps_back}", std::process::id()));
        let mut at = 0;
        loop {
            let _ = fs::remove_dir_all(&root);
            prepare(&root, depth);
            let volume = OwnedFd::from(File::open(root.join("volume")).expect("opened"));
            let mut steps = 0;
            let outcome = remove_with_hook(&volume, &mut || {
                if steps == at || swaps_back && steps == at + 1 {
                    // It may have been removed already.
                    let (trap, link) = (root.join("volume/trap"), root.join("link"));
                    let _ = renameat_with(CWD, &trap, CWD, &link, RenameFlags::EXCHANGE);
                }
                steps += 1;
            });
            for name in ["file", "d/file", "d/d/file"] {
                assert!(root.join("outside").join(name).exists(), "step {at}: outside/{name}: {outcome:?}");
            }
            let is_empty = fs::read_dir(root.join("volume")).expect("listed").count() == 0;
            assert_eq!(is_empty, outcome.is_ok(), "step {at}: {outcome:?}");
            assert!(remove(&volume).is_ok(), "step {at}: a second removal succeeds");
            if at >= steps {
                let _ = fs::remove_dir_all(&root);
                return steps;
            }
            at += stride;
        }
    }

    #[test]
    fn directory_swapped_for_a_link_at_any_step_is_not_followed() {
        assert!(swap_at_every_step(2, 1, false) > 10, "there are steps");
        assert!(swap_at_every_step(2, 1, true) > 10, "there are steps");
        assert!(swap_at_every_step(OPEN_MAX * 2, 97, false) > OPEN_MAX * 3, "some are reopened");
    }
}
