//! Removing everything in a directory, by descriptors: a link is never followed, another mount never entered, and the directory
//! itself is kept.
//!
//! Every step is by one name in one open directory. What somebody swaps meanwhile is another thing of that name: a link is
//! removed as a link, and a directory is entered only if it is one at that moment, and on the same mount. So nothing outside can
//! be reached, however fast they are. Directories may be nested as deep as they like: few of them are open at a time, and those
//! above are opened again from the top when it is their turn.

use std::collections::BTreeSet;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, unlinkat};
use rustix::io::Errno;

use crate::disk::{Mount, open_directory, shown};

/// How many directories are open at a time.
const OPEN_MAX: usize = 128;

/// How often a directory is listed again because something was found or made in it meanwhile.
const PASSES_MAX: u32 = 32;

/// How often a name is tried that is now this and now that.
const TRIES_MAX: u32 = 64;

/// How many problems are told.
const PROBLEMS_MAX: usize = 5;

/// Removes everything in an open directory. Goes on where it can, and then tells what could not be removed.
pub fn remove(root: &OwnedFd) -> Result<(), String> {
    remove_while(root, &mut || {})
}

/// The same, while something else happens before every single step.
fn remove_while(root: &OwnedFd, meanwhile: &mut dyn FnMut()) -> Result<(), String> {
    let whole = |error: std::io::Error| error.to_string();
    let mut walk = Walk {
        root: root.as_fd(),
        mount: Mount::of(root).map_err(whole)?,
        levels: vec![Level::new(CString::default(), Dir::read_from(root).map_err(|error| error.to_string())?)],
        problems: Vec::new(),
        problem_count: 0,
        meanwhile,
    };
    while !walk.levels.is_empty() {
        walk.step();
    }
    if walk.problem_count == 0 {
        return Ok(());
    }
    let more = walk.problem_count.saturating_sub(walk.problems.len());
    let and_more = if more == 0 { String::new() } else { format!("; and {more} more") };
    Err(format!("not everything could be removed: {}{and_more}", walk.problems.join("; ")))
}

struct Walk<'a> {
    root: BorrowedFd<'a>,
    mount: Mount,
    /// The directories from the root to where it stands. Never without the root until it is done.
    levels: Vec<Level>,
    problems: Vec<String>,
    problem_count: usize,
    /// What happens before every step: nothing, but in tests.
    meanwhile: &'a mut dyn FnMut(),
}

struct Level {
    /// Its name in the one above.
    name: CString,
    /// Open, unless too many below it are.
    dir: Option<Dir>,
    /// What could not be removed of it.
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

/// What became of an entry.
enum Fate {
    Removed,
    /// It is a directory that is not empty, now open.
    Entered(Dir),
    Stuck(String),
}

impl Walk<'_> {
    /// Deals with the next entry of the deepest directory, or leaves it.
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
                let fate = match dir.fd() {
                    Ok(fd) => remove_one(fd, name, mount, self.meanwhile),
                    Err(error) => Fate::Stuck(error.to_string()),
                };
                match fate {
                    Fate::Removed => *changed = true,
                    Fate::Entered(dir) => self.enter(name.to_owned(), dir),
                    Fate::Stuck(problem) => {
                        stuck.insert(name.to_owned());
                        self.tell(Some(name), &problem);
                    }
                }
            }
        }
    }

    fn enter(&mut self, name: CString, dir: Dir) {
        self.levels.push(Level::new(name, dir));
        // The root stays open anyway. Who comes back finds the others by their names.
        if let Some(above) = self.levels.len().checked_sub(OPEN_MAX).filter(|above| *above > 0) {
            self.levels[above].dir = None;
        }
    }

    /// The deepest directory was listed to its end.
    fn leave(&mut self) {
        let Some(mut level) = self.levels.pop() else { return };
        level.passes += 1;
        let is_over = level.passes >= PASSES_MAX;
        let Some(above) = self.levels.last_mut() else {
            // The root: listed again until a pass finds nothing to do.
            if level.changed && !is_over {
                self.again(level);
            } else if level.changed {
                self.tell(None, "something is written there all the time");
            }
            return;
        };
        above.changed = true;
        if let Err(problem) = self.open_deepest() {
            return self.give_up(&problem);
        }
        let Some(Level { dir: Some(dir), stuck, .. }) = self.levels.last_mut() else { return };
        (self.meanwhile)();
        let removed = dir.fd().and_then(|fd| unlinkat(fd, level.name.as_c_str(), AtFlags::REMOVEDIR));
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            // What is stuck in it was told already.
            Err(Errno::NOTEMPTY | Errno::EXIST) if !level.stuck.is_empty() => {
                stuck.insert(level.name);
            }
            Err(Errno::NOTEMPTY | Errno::EXIST) if !is_over => self.again(level),
            // It is something else by now: the next pass of the one above deals with it.
            Err(Errno::NOTDIR) => {}
            Err(error) => {
                stuck.insert(level.name.clone());
                self.tell(Some(&level.name), &said(error));
            }
        }
    }

    /// Lists a directory again, from its beginning.
    fn again(&mut self, mut level: Level) {
        level.changed = false;
        if let Some(dir) = &mut level.dir {
            dir.rewind();
        }
        self.levels.push(level);
    }

    /// The deepest directory cannot be dealt with: it stays, and so does all above it.
    fn give_up(&mut self, problem: &str) {
        self.tell(None, problem);
        if let Some(level) = self.levels.pop()
            && let Some(above) = self.levels.last_mut()
        {
            above.stuck.insert(level.name);
        }
    }

    /// Opens the deepest directory if it was closed: from the root, name by name.
    fn open_deepest(&mut self) -> Result<(), String> {
        if self.levels.last().is_none_or(|level| level.dir.is_some()) {
            return Ok(());
        }
        let mut open: Option<OwnedFd> = None;
        let first_kept = self.levels.len().saturating_sub(OPEN_MAX / 2);
        for place in 1..self.levels.len() {
            let parent = open.as_ref().map_or(self.root, |fd| fd.as_fd());
            (self.meanwhile)();
            let next = enter(parent, &self.levels[place].name, self.mount)?;
            if place >= first_kept {
                self.levels[place].dir = Some(Dir::read_from(&next).map_err(|error| error.to_string())?);
            }
            open = Some(next);
        }
        Ok(())
    }

    fn tell(&mut self, name: Option<&CStr>, problem: &str) {
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

/// Removes one entry of an open directory, if it can be; else opens it.
fn remove_one(parent: BorrowedFd<'_>, name: &CStr, mount: Mount, meanwhile: &mut dyn FnMut()) -> Fate {
    for _ in 0..TRIES_MAX {
        meanwhile();
        match unlinkat(parent, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => return Fate::Removed,
            Err(Errno::ISDIR) => {}
            Err(error) => return Fate::Stuck(said(error)),
        }
        meanwhile();
        match unlinkat(parent, name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => return Fate::Removed,
            Err(Errno::NOTDIR) => continue,
            Err(Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(error) => return Fate::Stuck(said(error)),
        }
        meanwhile();
        match open_directory(parent, name) {
            Ok(child) => {
                return match entered(child, mount) {
                    Ok(dir) => Fate::Entered(dir),
                    Err(problem) => Fate::Stuck(problem),
                };
            }
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::NOENT) => return Fate::Removed,
                // It was a directory a moment ago.
                Some(Errno::NOTDIR | Errno::LOOP) => continue,
                Some(_) | None => return Fate::Stuck(error.to_string()),
            },
        }
    }
    Fate::Stuck("it is now this and now that".into())
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
        Ok(_) => Err("something else is mounted there".into()),
        Err(error) => Err(error.to_string()),
    }
}

fn said(error: Errno) -> String {
    match error {
        Errno::BUSY => "something is mounted there, or uses it".into(),
        Errno::PERM => "it may not be removed: it may be marked as immutable".into(),
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

    /// A volume with directories, so deep that some are opened again; something precious beside it; and a link there.
    fn prepare(root: &Path, depth: usize) {
        let deep: std::path::PathBuf = (0..depth).map(|_| "d").collect();
        fs::create_dir_all(root.join("volume/trap").join(deep)).expect("made");
        fs::write(root.join("volume/trap/file"), "").expect("written");
        fs::create_dir_all(root.join("outside/d/d")).expect("made");
        for name in ["file", "d/file", "d/d/file"] {
            fs::write(root.join("outside").join(name), "").expect("written");
        }
        symlink(root.join("outside"), root.join("link")).expect("linked");
    }

    /// Swaps a directory of the volume for the link at one step after the other, from the first to the last, and on request back at the next.
    fn swap_at_every_step(depth: usize, stride: usize, swaps_back: bool) -> usize {
        let root = std::env::temp_dir().join(format!("bindery-steps-{}-{depth}-{swaps_back}", std::process::id()));
        let mut at = 0;
        loop {
            let _ = fs::remove_dir_all(&root);
            prepare(&root, depth);
            let volume = OwnedFd::from(File::open(root.join("volume")).expect("opened"));
            let mut steps = 0;
            let outcome = remove_while(&volume, &mut || {
                if steps == at || swaps_back && steps == at + 1 {
                    // It may be gone by now.
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
            assert!(remove(&volume).is_ok(), "step {at}: it can be done again");
            if at >= steps {
                let _ = fs::remove_dir_all(&root);
                return steps;
            }
            at += stride;
        }
    }

    #[test]
    fn a_directory_swapped_for_a_link_at_any_step_leads_nowhere() {
        assert!(swap_at_every_step(2, 1, false) > 10, "there are steps");
        assert!(swap_at_every_step(2, 1, true) > 10, "there are steps");
        assert!(swap_at_every_step(OPEN_MAX * 2, 97, false) > OPEN_MAX * 3, "some are opened again");
    }
}
