// The watchdog resets the core unless it is kicked in time.
#include "src/types.h"
#include "build/registers.h"
#include "build/limits.h"

void watchdog_start(void)
{
    *(volatile u32 *)REG_WDOG_LOAD = LIMIT_WDOG_TICKS;
}

void watchdog_kick(void)
{
    *(volatile u32 *)REG_WDOG_KICK = LIMIT_WDOG_MAGIC;
}
