//! A start on a data folder that cannot be used: the program says why and what to do, exits with an error, and changes
//! nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::binary::Binary;
use crate::support::small_disk::SmallDisk;

/// Runs the program without the rights of root, which would ignore the rights of folders.
const NOBODY: [&str; 4] = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn serve(folder: &Path) -> [String; 3] {
    ["serve".to_owned(), "--data-dir".to_owned(), folder.display().to_string()]
}

/// Starts the program, which has to end with an error that contains these texts.
#[track_caller]
fn fails(command: &[&str], folder: &Path, texts: &[&str]) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    let arguments = serve(folder);
    let program = Binary::start_with(command, &arguments.each_ref().map(String::as_str));
    let texts: Vec<_> = texts.iter().map(|it| (*it).to_owned()).collect();
    async move {
        let (code, output) = program.outcome().await;
        assert!(code.is_some_and(|it| it != 0), "{caller}: {code:?} {output}");
        for text in texts {
            assert!(output.contains(&text), "{caller}: no {text:?} in {output}");
        }
        assert!(!output.contains("damaged"), "{caller}: {output}");
    }
}

/// Creates the store of a data folder.
async fn create(folder: &Path) {
    let mut program = Binary::start(&serve(folder).each_ref().map(String::as_str));
    program.address().await;
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

// Holds T-bak.4.
#[tokio::test]
async fn a_start_without_the_rights_to_the_data_folder_names_it() {
    let parent = tempfile::tempdir().unwrap();
    set_mode(parent.path(), 0o755);
    let empty = parent.path().join("empty");
    fs::create_dir(&empty).unwrap();
    let name = empty.display().to_string();
    fails(&NOBODY, &empty, &[&name, "Permission denied", "--data-dir"]).await;
    assert_eq!(fs::read_dir(&empty).unwrap().count(), 0);

    let of_root = parent.path().join("of-root");
    create(&of_root).await;
    let name = of_root.display().to_string();
    fails(&NOBODY, &of_root, &[&name, "Permission denied", "--data-dir"]).await;
    // The folder can be read, and some files cannot be written.
    set_mode(&of_root, 0o777);
    for folder in [of_root.clone(), of_root.join("store")] {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            set_mode(&entry.path(), if entry.file_type().unwrap().is_dir() { 0o777 } else { 0o666 });
        }
    }
    set_mode(&of_root.join("store/commit"), 0o444);
    fails(&NOBODY, &of_root, &["the rights to the data folder are missing"]).await;
    set_mode(&of_root.join("store/commit"), 0o666);
    set_mode(&of_root.join("key"), 0o600);
    fails(&NOBODY, &of_root, &["Permission denied", "key"]).await;
    create(&of_root).await;
}

// Holds T-bak.4.
#[tokio::test]
async fn a_start_on_a_read_only_or_full_disk_names_the_cause() {
    let disk = SmallDisk::new(64);
    let data = disk.path().join("data");
    create(&data).await;
    disk.make_read_only();
    fails(&[], &data, &["ead-only file system", &data.display().to_string()]).await;
    fails(&[], &disk.path().join("new"), &["ead-only file system", "--data-dir"]).await;

    let disk = SmallDisk::new(2);
    disk.fill(2);
    fails(&[], &disk.path().join("data"), &["the disk is full"]).await;
}
