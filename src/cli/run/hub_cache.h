#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace qgen::cli {

/// A model of the Hugging Face hub by its name: "org/name", or "org/name@revision".
struct HubName {
  std::string org, name;
  std::string revision = "main";  ///< a commit or the name of a reference
};

/// Whether `text` is such a name, and which. Only what can be part of a path without leaving a folder is.
bool read_hub_name(std::string_view text, HubName& result);

/// Where Hugging Face's tools keep what they have downloaded: $HF_HUB_CACHE, else hub in $HF_HOME, else
/// huggingface/hub in $XDG_CACHE_HOME or ~/.cache. Empty where the environment says nothing.
std::filesystem::path hub_cache_folder();

/// The model `wanted` in `cache`: its snapshot, or the GGUF file in it where it has no safetensors. Throws
/// Error{file} naming the command that downloads it where it is not there, and the files where there are
/// several.
std::filesystem::path find_in_hub_cache(const HubName& wanted, const std::filesystem::path& cache);

/// What -m names: a path, or else a model in the cache. Paths that do not exist and are no such name come
/// back as they are.
std::filesystem::path find_model(const std::string& path);

}  // namespace qgen::cli
