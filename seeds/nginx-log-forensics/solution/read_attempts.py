"""Usage: read_attempts.py LOG PROXIES DETECTION_INI COVERAGE_JSON > attempts.tsv"""

import configparser
import ipaddress
import json
import re
import sys
from datetime import datetime

LINE = re.compile(
    r'(?P<peer>\S+) - (?P<account>\S+) \[(?P<time>[^\]]+)\] "(?P<request>[^"]*)" '
    r'(?P<status>\d{3}) \d+ "[^"]*" "[^"]*" "(?P<forwarded>[^"]*)"'
)

log_path, proxies_path, ini_path, coverage_path = sys.argv[1:]
settings = configparser.ConfigParser()
settings.read(ini_path)
login_paths = settings["login"]["paths"].split()
outcome_of = {status: "failed" for status in settings["login"]["failed_status"].split()}
outcome_of.update({status: "success" for status in settings["login"]["success_status"].split()})
ipv6_prefix = settings["network"].getint("ipv6_prefix")
with open(proxies_path) as file:
    proxies = [ipaddress.ip_network(line.strip()) for line in file]


def is_trusted(address):
    return any(address in proxy for proxy in proxies)


def client_address(peer, forwarded):
    """Right to left through the chain, to the first address that is no proxy of ours."""
    address = ipaddress.ip_address(peer)
    chain = [] if forwarded == "-" else forwarded.split(",")
    while chain and is_trusted(address):
        address = ipaddress.ip_address(chain.pop().strip())
    return address


def client_name(address):
    if address.version == 4:
        return str(address)
    return str(ipaddress.ip_network((address, ipv6_prefix), strict=False))


read = unparsed = 0
times = []
with open(log_path, encoding="utf-8", errors="replace") as log:
    for line in log:
        read += 1
        match = LINE.fullmatch(line.rstrip("\n"))
        if not match:
            unparsed += 1
            continue
        moment = int(datetime.strptime(match["time"], "%d/%b/%Y:%H:%M:%S %z").timestamp())
        times.append(moment)
        request = match["request"].split(" ")
        outcome = outcome_of.get(match["status"])
        if len(request) != 3 or request[0] != "POST" or outcome is None:
            continue
        if request[1].split("?")[0] not in login_paths:
            continue
        address = client_address(match["peer"], match["forwarded"])
        print(moment, client_name(address), address, match["account"].lower(), outcome, sep="\t")

with open(coverage_path, "w") as file:
    json.dump({"read": read, "unparsed": unparsed, "first": min(times), "last": max(times)}, file)
