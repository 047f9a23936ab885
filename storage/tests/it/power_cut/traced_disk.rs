//! A model of the disk, rebuilt from a trace of system calls: the files as they are durable, and the changes since that a
//! power cut may keep or lose.
//!
//! Rules, stricter than most file systems: `fsync` of a file makes its contents and size durable but not its name; names
//! become durable with `fsync` of their folder, or in their order. Of writes that were not synced, any sectors survive.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// System calls that the model needs to see.
pub(crate) const TRACED: &str = "openat,write,pwrite64,ftruncate,fsync,fdatasync,rename,unlink,unlinkat,mkdir,rmdir,\
                                 copy_file_range,sendfile";

/// A random number generator that needs no crate.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => {
                content.resize(content.len().max(at + bytes.len()), 0);
                content[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Truncate(length) => content.resize(*length, 0),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct File {
    durable: Vec<u8>,
    /// Changes since, and how many were made durable so far.
    changes: Vec<Change>,
    n_durable: usize,
}

impl File {
    fn now(&self) -> Vec<u8> {
        let mut content = self.durable.clone();
        self.changes.iter().for_each(|it| it.apply(&mut content));
        content
    }

    fn make_durable(&mut self, up_to: usize) {
        let n = up_to.saturating_sub(self.n_durable).min(self.changes.len());
        for change in self.changes.drain(..n) {
            change.apply(&mut self.durable);
        }
        self.n_durable += n;
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Entry {
    Folder,
    File(usize),
}

#[derive(Debug, Clone)]
enum NameChange {
    Add(PathBuf, Entry),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
}

type Names = BTreeMap<PathBuf, Entry>;

fn apply_name(change: &NameChange, names: &mut Names) {
    match change {
        NameChange::Add(path, entry) => drop(names.insert(path.clone(), *entry)),
        NameChange::Remove(path) => drop(names.remove(path)),
        NameChange::Rename(from, to) => {
            if let Some(entry) = names.remove(from) {
                names.insert(to.clone(), entry);
            }
        }
    }
}

/// A system call of the trace.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    name: String,
    arguments: String,
    result: String,
}

/// One line of progress: a call has begun (only those that sync) or has ended.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    SyncBegins(usize, Call),
    Ended(usize, Call),
}

/// Reads a trace that `strace -f -y` wrote.
pub(crate) fn events(trace: &str) -> Vec<Event> {
    let mut begun: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut events = Vec::new();
    for (number, line) in trace.lines().enumerate() {
        let Some((process, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let (id, whole) = match rest.strip_prefix("<... ") {
            Some(resumed) => {
                let Some((id, first)) = begun.remove(process) else { continue };
                (id, first + resumed.split_once("resumed>").map_or("", |it| it.1))
            }
            None => (number, rest.to_owned()),
        };
        if let Some(first) = whole.strip_suffix("<unfinished ...>") {
            if let Some(call) = parse(first) {
                events.extend(call.name.ends_with("sync").then_some(Event::SyncBegins(number, call)));
            }
            begun.insert(process, (number, first.trim_end().to_owned()));
        } else if let Some(call) = parse(&whole) {
            if call.name.ends_with("sync") && id == number {
                events.push(Event::SyncBegins(id, call.clone()));
            }
            events.push(Event::Ended(id, call));
        }
    }
    events
}

fn parse(line: &str) -> Option<Call> {
    let (name, rest) = line.split_once('(')?;
    if !name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_') {
        return None;
    }
    let (arguments, result) = rest.rsplit_once(" = ").unwrap_or((rest, ""));
    let arguments = arguments.trim_end().trim_end_matches(')').to_owned();
    Some(Call { name: name.to_owned(), arguments, result: result.to_owned() })
}

impl Call {
    /// Returns the paths of the open files in the arguments, in order.
    fn open_paths(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let before_data = self.arguments.split('"').next().unwrap_or_default();
        before_data.split('<').skip(1).filter_map(|it| Some(PathBuf::from(it.split_once('>')?.0)))
    }

    /// Returns the first text of the arguments, and the rest after it.
    fn text(&self) -> Option<(Vec<u8>, &str)> {
        let (_, rest) = self.arguments.split_once('"')?;
        let bytes = rest.as_bytes();
        let (mut text, mut at) = (Vec::new(), 0);
        loop {
            match *bytes.get(at)? {
                b'"' => return Some((text, &rest[at + 1..])),
                b'\\' => {
                    at += 1;
                    let digits =
                        bytes[at..].iter().take(3).take_while(|it| (b'0'..=b'7').contains(it)).count();
                    if digits > 0 {
                        text.push(u8::from_str_radix(&rest[at..at + digits], 8).ok()?);
                        at += digits;
                        continue;
                    }
                    text.push(match bytes[at] {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'v' => 11,
                        b'f' => 12,
                        other => other,
                    });
                }
                other => text.push(other),
            }
            at += 1;
        }
    }

    fn path(&self) -> Option<PathBuf> {
        Some(PathBuf::from(String::from_utf8(self.text()?.0).ok()?))
    }

    fn n(&self) -> Option<usize> {
        self.result.split(' ').next()?.parse().ok()
    }

    /// Returns the last argument as a number.
    fn last(&self) -> Option<usize> {
        self.arguments.rsplit_once(", ")?.1.parse().ok()
    }

    /// Returns the text that a call wrote to standard output.
    pub(crate) fn printed(&self) -> Option<String> {
        let is_output = self.name == "write" && self.arguments.starts_with("1<");
        is_output.then(|| String::from_utf8_lossy(&self.text().unwrap_or_default().0).into_owned())
    }
}

/// The disk below one folder.
#[derive(Debug, Clone)]
pub(crate) struct TracedDisk {
    root: PathBuf,
    files: Vec<File>,
    names: Names,
    durable_names: Names,
    /// Changes of names that are not durable yet, by folder.
    name_changes: BTreeMap<PathBuf, Vec<NameChange>>,
    /// Position of the files that are written without one.
    positions: BTreeMap<PathBuf, usize>,
    /// The path, and the number of its changes that will be durable, of each sync that has begun, by its number.
    syncs: BTreeMap<usize, (PathBuf, usize)>,
    /// Bytes that sled wrote to databases since their last sync, and the most so far.
    pub(crate) unsynced: usize,
    pub(crate) unsynced_max: usize,
}

impl TracedDisk {
    /// Reads the folder as it is; all of it counts as durable.
    pub(crate) fn new(root: &Path) -> Self {
        let (mut files, mut names) = (Vec::new(), Names::new());
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    names.insert(path.clone(), Entry::Folder);
                    folders.push(path);
                } else {
                    names.insert(path.clone(), Entry::File(files.len()));
                    files.push(File { durable: fs::read(&path).unwrap(), ..File::default() });
                }
            }
        }
        Self {
            root: root.to_owned(),
            files,
            durable_names: names.clone(),
            names,
            name_changes: BTreeMap::new(),
            positions: BTreeMap::new(),
            syncs: BTreeMap::new(),
            unsynced: 0,
            unsynced_max: 0,
        }
    }

    pub(crate) fn apply(&mut self, event: &Event) {
        match event {
            Event::SyncBegins(id, call) => {
                let Some(path) = call.open_paths().next() else { return };
                let n = match self.names.get(&path) {
                    Some(Entry::File(file)) => self.files[*file].n_durable + self.files[*file].changes.len(),
                    _ => self.name_changes.get(&path).map_or(0, Vec::len),
                };
                self.syncs.insert(*id, (path, n));
            }
            Event::Ended(id, call) => {
                // A failed call changes nothing; a call that was cut off has no result.
                if !call.result.starts_with('-') && !call.result.is_empty() {
                    self.ended(*id, call);
                }
            }
        }
    }

    fn ended(&mut self, id: usize, call: &Call) -> Option<()> {
        let opened = call.open_paths().next();
        match &*call.name {
            "openat" => {
                let path = call.path()?;
                self.positions.insert(path.clone(), 0);
                if call.arguments.contains("O_CREAT") && !self.names.contains_key(&path) {
                    self.files.push(File::default());
                    self.name(NameChange::Add(path.clone(), Entry::File(self.files.len() - 1)));
                }
                if call.arguments.contains("O_TRUNC") {
                    self.change(&path, Change::Truncate(0));
                }
            }
            "write" => {
                let path = opened?;
                let at = *self.positions.entry(path.clone()).or_default();
                let bytes = call.text()?.0[..call.n()?].to_vec();
                self.positions.insert(path.clone(), at + bytes.len());
                self.change(&path, Change::Write(at, bytes));
            }
            "pwrite64" => {
                let path = opened?;
                // Copies of whole databases, which are made in another way, reuse nothing.
                if path.ends_with("db") {
                    self.unsynced += call.n()?;
                    self.unsynced_max = self.unsynced_max.max(self.unsynced);
                }
                self.change(&path, Change::Write(call.last()?, call.text()?.0[..call.n()?].to_vec()))
            }
            "ftruncate" => self.change(&opened?, Change::Truncate(call.last()?)),
            "fsync" | "fdatasync" => {
                let (path, n) = self.syncs.remove(&id)?;
                match self.names.get(&path).copied() {
                    Some(Entry::File(file)) => {
                        self.files[file].make_durable(n);
                        if path.ends_with("db") {
                            self.unsynced = 0;
                        }
                    }
                    _ => {
                        let changes = self.name_changes.entry(path).or_default();
                        let n = n.min(changes.len());
                        for change in changes.drain(..n) {
                            apply_name(&change, &mut self.durable_names);
                        }
                    }
                }
            }
            "rename" => {
                let (from, rest) = call.text()?;
                let to = PathBuf::from(rest.split('"').nth(1)?);
                self.name(NameChange::Rename(PathBuf::from(String::from_utf8(from).ok()?), to));
            }
            "mkdir" => self.name(NameChange::Add(call.path()?, Entry::Folder)),
            "unlink" | "rmdir" => self.name(NameChange::Remove(call.path()?)),
            "unlinkat" => {
                let path = call.path()?;
                self.name(NameChange::Remove(opened.map_or(path.clone(), |it| it.join(&path))));
            }
            "copy_file_range" | "sendfile" => {
                let mut paths = call.open_paths();
                let (first, second) = (paths.next()?, paths.next()?);
                let (from, to) = if call.name == "sendfile" { (second, first) } else { (first, second) };
                let at = *self.positions.entry(to.clone()).or_default();
                let n = call.n()?;
                if let Some(Entry::File(file)) = self.names.get(&from) {
                    let bytes = self.files[*file].now()[at..at + n].to_vec();
                    self.positions.insert(to.clone(), at + n);
                    self.change(&to, Change::Write(at, bytes));
                }
            }
            other => panic!("the trace has the unexpected call {other}"),
        }
        Some(())
    }

    fn change(&mut self, path: &Path, change: Change) {
        if let Some(Entry::File(file)) = self.names.get(path).copied() {
            self.files[file].changes.push(change);
        }
    }

    fn name(&mut self, change: NameChange) {
        let (NameChange::Add(path, _) | NameChange::Remove(path) | NameChange::Rename(_, path)) = &change;
        if !path.starts_with(&self.root) {
            return;
        }
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        apply_name(&change, &mut self.names);
        self.name_changes.entry(folder).or_default().push(change);
    }

    /// Writes the files as they can be after a power cut: of the changes that were not synced none survive, or random
    /// ones.
    pub(crate) fn write_after_power_cut(&self, into: &Path, mut random: Option<&mut Random>) {
        let mut names = self.durable_names.clone();
        for changes in self.name_changes.values() {
            let n = random.as_mut().map_or(0, |it| it.below(changes.len() + 1));
            changes[..n].iter().for_each(|it| apply_name(it, &mut names));
        }
        // In their order, folders come before their files.
        for (path, entry) in names {
            let Ok(name) = path.strip_prefix(&self.root) else { continue };
            let path = into.join(name);
            if !path.parent().is_some_and(Path::is_dir) {
                continue;
            }
            match entry {
                Entry::Folder => fs::create_dir(path).unwrap(),
                Entry::File(file) => fs::write(path, self.surviving(&self.files[file], &mut random)).unwrap(),
            }
        }
    }

    fn surviving(&self, file: &File, random: &mut Option<&mut Random>) -> Vec<u8> {
        let mut content = file.durable.clone();
        let Some(random) = random else { return content };
        let sector = [512, 4096][random.below(2)];
        let of_ten = [1, 5, 9, 10][random.below(4)];
        for change in &file.changes {
            match change {
                Change::Truncate(_) if random.below(10) < of_ten => change.apply(&mut content),
                Change::Truncate(_) => {}
                Change::Write(at, bytes) => {
                    let mut start = 0;
                    while start < bytes.len() {
                        let end = (start + sector - (at + start) % sector).min(bytes.len());
                        if random.below(10) < of_ten {
                            Change::Write(at + start, bytes[start..end].to_vec()).apply(&mut content);
                        }
                        start = end;
                    }
                }
            }
        }
        content
    }
}
