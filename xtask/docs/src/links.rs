//! The link checker: every relative link of every Markdown file leads to a file, and to a heading
//! of it. Nothing is fetched: links to other hosts are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Where a file is included: `{{#include PATH}}`.
const INCLUDE: &str = "{{#include ";

/// A Markdown file, with what it includes.
#[derive(Default)]
struct Page {
    links: Vec<String>,
    anchors: BTreeSet<String>,
}

/// Every broken link below `root`, as `FILE: LINK: REASON`.
pub fn broken(root: &Path) -> Result<Vec<String>, String> {
    let mut pages = BTreeMap::new();
    for file in markdown_files(root)? {
        let text = with_includes(root, &file)?;
        pages.insert(file, parse(&text));
    }
    let mut broken = Vec::new();
    for (file, page) in &pages {
        for link in page.links.iter().filter(|link| !has_scheme(link)) {
            if let Some(reason) = why_broken(root, &pages, file, link) {
                broken.push(format!("{}: {link}: {reason}", file.display()));
            }
        }
    }
    if let Some(summary) = pages.get(Path::new("docs/SUMMARY.md")) {
        let listed: BTreeSet<PathBuf> =
            summary.links.iter().map(|link| normalized(&Path::new("docs").join(link))).collect();
        let is_page = |file: &&PathBuf| file.starts_with("docs") && !file.ends_with("SUMMARY.md");
        let unlisted = pages.keys().filter(is_page).filter(|file| !listed.contains(*file));
        broken.extend(unlisted.map(|file| format!("{}: docs/SUMMARY.md does not list it", file.display())));
    }
    Ok(broken)
}

/// Why a relative link leads nowhere, if it does.
fn why_broken(root: &Path, pages: &BTreeMap<PathBuf, Page>, file: &Path, link: &str) -> Option<String> {
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let folder = file.parent().unwrap_or(Path::new(""));
    let target = if path.is_empty() { file.to_owned() } else { normalized(&folder.join(path)) };
    if !root.join(&target).exists() {
        return Some("there is no such file".into());
    }
    if file.starts_with("docs") && !target.starts_with("docs") {
        return Some("it leads out of docs/, which is all that the book contains".into());
    }
    let has_anchor = || pages.get(&target).is_some_and(|page| page.anchors.contains(anchor));
    (!anchor.is_empty() && !has_anchor()).then(|| format!("{} has no heading #{anchor}", target.display()))
}

/// Every Markdown file below `root`, without what is built or hidden.
pub fn markdown_files(root: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = folders.pop() {
        let cannot = |error| format!("cannot read {}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(cannot)? {
            let path = entry.map_err(cannot)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && !name.starts_with('.') {
                folders.push(path);
            } else if name.ends_with(".md") {
                files.push(path.strip_prefix(root).unwrap_or(&path).to_owned());
            }
        }
    }
    Ok(files)
}

/// A file's text, with the files that it includes in place: their links have to work there, too.
fn with_includes(root: &Path, file: &Path) -> Result<String, String> {
    let text = crate::read(&root.join(file))?;
    let include = |line: &str| Some(line.strip_prefix(INCLUDE)?.strip_suffix("}}")?.to_owned());
    let mut lines = Vec::new();
    for line in text.lines() {
        lines.push(match include(line) {
            Some(path) => crate::read(&root.join(file.parent().unwrap_or(Path::new(""))).join(path))?,
            None => line.to_owned(),
        });
    }
    Ok(lines.join("\n"))
}

fn parse(text: &str) -> Page {
    let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_HEADING_ATTRIBUTES;
    let (mut page, mut heading) = (Page::default(), None);
    for event in Parser::new_ext(text, options) {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            page.links.push(dest_url.into());
        } else if let Event::Start(Tag::Heading { id, .. }) = event {
            heading = Some((id, String::new()));
        } else if let (Event::Text(words) | Event::Code(words), Some((_, text))) = (&event, &mut heading) {
            text.push_str(words);
        } else if let (Event::End(TagEnd::Heading(_)), Some((id, text))) = (&event, &heading) {
            let id = id.as_ref().map_or_else(|| anchor_of(text), ToString::to_string);
            let numbered = (1..).map(|number| format!("{id}-{number}"));
            let free = std::iter::once(id.clone()).chain(numbered).find(|id| !page.anchors.contains(id));
            page.anchors.extend(free);
            heading = None;
        }
    }
    page
}

/// The anchor of a heading, as mdBook and GitHub make it.
fn anchor_of(heading: &str) -> String {
    let kept = |c: char| match c {
        c if c.is_whitespace() => Some('-'),
        c if c.is_alphanumeric() || c == '_' || c == '-' => Some(c),
        _ => None,
    };
    heading.trim().to_lowercase().chars().filter_map(kept).collect()
}

fn has_scheme(link: &str) -> bool {
    ["http:", "https:", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

/// The path without `.` and `..`.
fn normalized(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if normal.pop() => {}
            Component::ParentDir | Component::Normal(_) | Component::RootDir | Component::Prefix(_) => {
                normal.push(component);
            }
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found() {
        let root = std::env::temp_dir().join(format!("bindery-links-{}", std::process::id()));
        std::fs::create_dir_all(root.join("docs")).expect("a folder");
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).expect("a file");
        write(
            "README.md",
            "# A `b` c?\n# A b c\n[1](#a-b-c) [2](#a-b-c-1) [3](docs/x.md#own) [4](https://a.example/)\n",
        );
        write("docs/SUMMARY.md", "[x](x.md)\n");
        write(
            "docs/x.md",
            "# X {#own}\n[out](../README.md) [none](y.md) [no heading](x.md#x)\n\n{{#include ../README.md}}\n",
        );
        write("docs/z.md", "`[code](nowhere.md)`\n\n```\n[code](nowhere.md)\n```\n");
        let broken = broken(&root).expect("files can be read");
        std::fs::remove_dir_all(&root).expect("the folder can be removed");
        let expected = [
            "docs/x.md: ../README.md: it leads out of docs/, which is all that the book contains",
            "docs/x.md: y.md: there is no such file",
            "docs/x.md: x.md#x: docs/x.md has no heading #x",
            "docs/x.md: docs/x.md#own: there is no such file",
            "docs/z.md: docs/SUMMARY.md does not list it",
        ];
        assert_eq!(broken, expected);
    }
}
