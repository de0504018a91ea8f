//! The configuration: a directory with one file per key, such as a mounted ConfigMap. The keys are
//! upstream's.

mod fields;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bindery_model::{AccessMode, VolumeMode};
use serde_json::Value;

use crate::pattern::Pattern;
use fields::Fields;

/// Upstream's default cleaner for block devices. If the script does not exist, a built-in method is
/// used.
pub const DEFAULT_CLEANER: &str = "/scripts/quick_reset.sh";

/// Upstream's default for `minResyncPeriod`.
const RESYNC_DEFAULT: Duration = Duration::from_secs(300);

/// The configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The classes to discover disks for, by name.
    pub classes: BTreeMap<String, ClassConfig>,
    /// The node's labels to copy to volumes.
    pub node_labels: Vec<String>,
    /// Labels for all volumes; these take precedence.
    pub labels: BTreeMap<String, String>,
    /// The minimum resync period.
    pub resync_min: Duration,
    /// Leave the node's UID out of the provisioner's name.
    pub use_node_name_only: bool,
    /// Make the node the owner of its volumes.
    pub set_owner_reference: bool,
    /// The taint to remove from the node once discovery has succeeded.
    pub taint: Option<String>,
    /// Files with unknown names.
    pub unknown: Vec<String>,
}

/// The configuration of one class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassConfig {
    /// The directory on the node; used in volumes.
    pub host_dir: String,
    /// The directory as mounted in this process.
    pub mount_dir: String,
    /// How to clean block devices.
    pub cleaner: Cleaner,
    /// The volume mode of the volumes.
    pub volume_mode: VolumeMode,
    /// The access mode of the volumes.
    pub access_mode: AccessMode,
    /// The filesystem type for formatting a device.
    pub fs_type: Option<String>,
    /// Patterns for the names of entries.
    pub patterns: Vec<Pattern>,
    /// Additional node selector terms, as JSON; they are ORed.
    pub selector: Vec<Value>,
    /// Create volumes for empty disks only.
    pub only_empty: bool,
}

/// How to clean a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cleaner {
    /// With a built-in method.
    Builtin(Wipe),
    /// With a command, which gets the device's path in `LOCAL_PV_BLKDEVICE`.
    Command(Vec<String>),
}

/// A built-in cleaning method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wipe {
    /// Overwrites the signatures of file systems, partition tables and volume managers. Fast, but
    /// leaves data on the disk.
    Quick,
    /// Overwrites every byte with zero.
    Zero,
    /// Discards all blocks, so that they read as zero. Fast, but fails if the device does not
    /// support it.
    Discard,
}

impl Wipe {
    const ALL: [Wipe; 3] = [Wipe::Quick, Wipe::Zero, Wipe::Discard];

    /// The name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Wipe::Quick => "builtin:quick",
            Wipe::Zero => "builtin:zero",
            Wipe::Discard => "builtin:discard",
        }
    }

    fn parse(word: &str) -> Option<Wipe> {
        Wipe::ALL.into_iter().find(|wipe| wipe.as_str() == word)
    }
}

/// A configuration error, and where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file.
    pub file: String,
    /// The class, if the error is in one.
    pub class: Option<String>,
    /// The key in the class.
    pub key: Option<String>,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.file)?;
        if let Some(class) = &self.class {
            write!(f, "class {class:?}: ")?;
        }
        if let Some(key) = &self.key {
            write!(f, "{key}: ")?;
        }
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// Parses a configuration: the contents of its files, by name.
    pub fn parse(files: &BTreeMap<String, String>) -> Result<Config, ConfigError> {
        let mut all = Fields::of_files(files)?;
        if all.flag("useAlphaAPI")? {
            return Err(all.error(
                "useAlphaAPI",
                "the alpha node affinity annotation is not supported: remove this key, or set it to false",
            ));
        }
        if all.flag("useJobForCleaning")? {
            return Err(all.error(
                "useJobForCleaning",
                "Jobs are not supported: cleaning always runs in this process. Remove this key, or set it to false",
            ));
        }
        all.skip(&["jobTolerations", "kubeConfig", "namespace"]);
        let remove_taint = all.flag("removeNodeNotReadyTaint")?;
        let taint = all.text("provisionerNotReadyNodeTaintKey")?.filter(|key| !key.is_empty());
        if remove_taint && taint.is_none() {
            return Err(
                all.error("provisionerNotReadyNodeTaintKey", "removeNodeNotReadyTaint requires the taint's key")
            );
        }
        let mut config = Config {
            classes: classes(&mut all)?,
            node_labels: all.texts("nodeLabelsForPV")?.unwrap_or_default(),
            labels: all.labels("labelsForPV")?,
            resync_min: all.duration("minResyncPeriod")?.unwrap_or(RESYNC_DEFAULT),
            use_node_name_only: all.flag("useNodeNameOnly")?,
            set_owner_reference: all.flag("setPVOwnerRef")?,
            taint: taint.filter(|_| remove_taint),
            unknown: Vec::new(),
        };
        config.unknown.extend(all.unknown().map(str::to_owned));
        Ok(config)
    }
}

fn classes(all: &mut Fields) -> Result<BTreeMap<String, ClassConfig>, ConfigError> {
    let of_class = all.maps("storageClassMap")?;
    let classes: BTreeMap<String, ClassConfig> =
        of_class.into_iter().map(|(name, fields)| Ok((name, class(fields)?))).collect::<Result<_, ConfigError>>()?;
    for (name, class) in &classes {
        for (other, config) in classes.range::<String, _>(..name) {
            let key = match () {
                () if config.host_dir == class.host_dir => "hostDir",
                () if config.mount_dir == class.mount_dir => "mountDir",
                () => continue,
            };
            let problem = format!("class {other:?} has the same directory; each disk would get two volumes");
            return Err(all.error_of("storageClassMap", name, key, &problem));
        }
    }
    Ok(classes)
}

fn class(mut fields: Fields) -> Result<ClassConfig, ConfigError> {
    let class = ClassConfig {
        host_dir: fields.directory("hostDir")?,
        mount_dir: fields.directory("mountDir")?,
        cleaner: cleaner(&mut fields)?,
        volume_mode: fields
            .word("volumeMode", "Filesystem or Block", |word| {
                [VolumeMode::Filesystem, VolumeMode::Block].into_iter().find(|mode| mode.as_str() == word)
            })?
            .unwrap_or_default(),
        access_mode: fields
            .word("accessMode", "one of Kubernetes' access modes, such as ReadWriteOnce", AccessMode::parse)?
            .unwrap_or(AccessMode::ReadWriteOnce),
        fs_type: fields.text("fsType")?.filter(|text| !text.is_empty()),
        patterns: patterns(&mut fields)?,
        selector: fields.objects("selector")?,
        only_empty: fields.flag("onlyEmpty")?,
    };
    match fields.unknown().next() {
        Some(unknown) => {
            let known = "hostDir, mountDir, blockCleanerCommand, volumeMode, accessMode, fsType, namePattern, selector, onlyEmpty";
            Err(fields.error(unknown, &format!("unknown key (known keys: {known})")))
        }
        None => Ok(class),
    }
}

fn cleaner(fields: &mut Fields) -> Result<Cleaner, ConfigError> {
    const KEY: &str = "blockCleanerCommand";
    let Some(words) = fields.texts(KEY)? else { return Ok(Cleaner::Command(vec![DEFAULT_CLEANER.to_owned()])) };
    let Some(first) = words.first().filter(|first| !first.is_empty()) else {
        return Err(fields.error(KEY, "must not be empty; remove it to use the default"));
    };
    if !first.starts_with("builtin:") {
        return Ok(Cleaner::Command(words));
    }
    match Wipe::parse(first).filter(|_| words.len() == 1) {
        Some(wipe) => Ok(Cleaner::Builtin(wipe)),
        None => {
            let known = Wipe::ALL.map(Wipe::as_str).join(", ");
            Err(fields.error(KEY, &format!("{words:?} is not a built-in cleaner (known, without arguments: {known})")))
        }
    }
}

fn patterns(fields: &mut Fields) -> Result<Vec<Pattern>, ConfigError> {
    const KEY: &str = "namePattern";
    let text = fields.text(KEY)?.filter(|text| !text.is_empty()).unwrap_or_else(|| "*".to_owned());
    text.split(',').map(|pattern| Pattern::parse(pattern).map_err(|problem| fields.error(KEY, &problem))).collect()
}
