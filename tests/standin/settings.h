// What the environment tells the stand-in. All names begin with FRAMEPIPE_STANDIN_.
#pragma once

#include <cstdlib>
#include <string>

namespace standin {

inline std::string setting(const char *name, const char *otherwise = "")
{
    const char *value = std::getenv((std::string("FRAMEPIPE_STANDIN_") + name).c_str());
    return value && *value ? value : otherwise;
}

inline unsigned long long number(const char *name, unsigned long long otherwise)
{
    const std::string value = setting(name);
    return value.empty() ? otherwise : std::strtoull(value.c_str(), nullptr, 10);
}

}  // namespace standin
