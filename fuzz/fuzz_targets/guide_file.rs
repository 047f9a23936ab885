//! Guide files: a damaged one is noticed and never read as another guide, whatever was changed, and its parts are decoded
//! without a panic.
#![no_main]

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use domain::ids::{GuideChannelId, GuideSourceId};
use libfuzzer_sys::fuzz_target;
use storage::guide::{GuideField, GuideFile, GuideFiles, GuideQuery, SearchLimits, TextQuery};
use tempfile::TempDir;

const SOURCE: GuideSourceId = GuideSourceId(1);
/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600;
const GENERATION: u64 = 1;

#[derive(Debug, Arbitrary)]
enum Input<'a> {
    /// Bytes of a genuine file that are changed, and its new length.
    Changed { length: u16, changes: Vec<(u16, u8)> },
    /// Any file.
    Bytes(&'a [u8]),
    /// Bytes as a part of a file.
    Part(&'a [u8]),
}

/// A genuine file.
struct Genuine {
    folder: TempDir,
    bytes: Vec<u8>,
    read: Read,
}

/// All programmes, and the numbers of those that a search found.
type Read = (Vec<(u32, i64, i64, String)>, Vec<u64>);

static GENUINE: LazyLock<Genuine> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let files = GuideFiles::open(folder.path()).expect("a folder");
    let mut writer = files.begin(SOURCE).expect("a file");
    for at in 0..60i64 {
        let (channel, start) = (GuideChannelId(at as u32 % 3), BEGIN + 600 * at);
        let inner = format!("<title>News {at}</title><desc>{}</desc>", "text ".repeat(at as usize));
        writer.add(channel, start, start + 600, &inner).expect("a programme");
    }
    files.install(writer.finish().expect("a file"));
    let file = files.file(SOURCE).expect("a file");
    assert_eq!(file.generation(), GENERATION);
    let read = read(&file).expect("a genuine file is valid");
    let bytes = fs::read(path(&folder)).expect("a file");
    Genuine { folder, bytes, read }
});

fn path(folder: &TempDir) -> PathBuf {
    folder.path().join(format!("{SOURCE}-{GENERATION}.guide"))
}

fn read(file: &GuideFile) -> Result<Read, storage::Error> {
    let mut all = Vec::new();
    for channel in file.channels() {
        let programmes = file.programmes(channel, i64::MIN, i64::MAX)?;
        all.extend(programmes.into_iter().map(|it| (channel.0, it.start, it.stop, it.inner.into())));
    }
    let any = ["n", "t", "1"].map(|it| {
        let text = it.to_owned();
        TextQuery::Words { field: GuideField::Title, text, whole: false }
    });
    let query = GuideQuery { text: Some(TextQuery::Any(any.into())), ..GuideQuery::default() };
    let found = file.search(&query, &SearchLimits { n_max: 100, checked_max: 100 })?;
    Ok((all, found.ids.into_iter().map(|it| it.0).collect()))
}

/// Opens a file with these bytes, as a start does, and reads all of it if it opens.
fn open(bytes: &[u8]) -> Option<Read> {
    fs::write(path(&GENUINE.folder), bytes).expect("a file");
    let files = GuideFiles::open(GENUINE.folder.path()).expect("a folder");
    files.adopt([(SOURCE, GENERATION)]).expect("a folder");
    let read = files.file(SOURCE).and_then(|it| read(&it).ok());
    assert_eq!(read.is_none(), files.damaged() == [SOURCE]);
    read
}

fuzz_target!(|input: Input<'_>| match input {
    Input::Changed { length, changes } => {
        let mut bytes = GENUINE.bytes.clone();
        let n = bytes.len();
        changes.iter().for_each(|(at, value)| bytes[usize::from(*at) % n] ^= value);
        bytes.truncate(n - usize::from(length) % n);
        // A checksum has 32 bits, so another content cannot have the right one by chance.
        if let Some(read) = open(&bytes) {
            assert_eq!(read, GENUINE.read);
        }
    }
    Input::Bytes(bytes) => assert_eq!(open(bytes), None),
    Input::Part(bytes) => storage::fuzzing::read_guide_parts(bytes),
});
